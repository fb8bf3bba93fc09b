import { closedError } from '../../model/closed-error.ts'
import type { DeadLetter } from '../../model/dead-letter.ts'
import { idMaker } from '../../model/ids.ts'
import type { StoredShelf } from '../../transport/stored-shelf.ts'
import type { AuditEntry, AuditNote } from '../../transport/transport.ts'
import type { Cluster } from './client.ts'
import { REMOVALS_MS } from './differences.ts'
import { type LetterIndex, letterIndex } from './letter-index.ts'
import { isMissing, type LetterLog, letterLog } from './letter-log.ts'
import {
  auditRecord,
  auditRemovalRecord,
  BY_PUT,
  type LetterRecord,
  letterOf,
  letterRecord,
  removalRecord,
  said,
} from './letter-record.ts'
import { deadTopicOf } from './options.ts'

/** Most of what goes into one record batch besides bodies. */
const BATCH_FRAME = 4_096
/** What was read within half of the time that removals stay has missed none. */
const READ_ANEW_MS = REMOVALS_MS / 2

export interface Letters {
  readonly shelf: StoredShelf
  /** See `Transport.problems`. */
  problems(): readonly string[]
}

/** Dead letters in a compacted topic of each queue. Any process with the same options sees the same. */
export function letters(cluster: Cluster, ensure: (queue: string) => Promise<void>): Letters {
  const { clock, random } = cluster
  const newId = idMaker(clock, random)
  const boxes = new Map<string, Box>()
  const boxOf = (queue: string): Box => {
    if (cluster.closing.aborted) throw closedError('the transport')
    const found = boxes.get(queue) ?? openBox(cluster, queue, () => ensure(queue))
    boxes.set(queue, found)
    return found
  }
  const removed = async (
    queue: string,
    ids: ReadonlyMap<string, number>,
    act: AuditEntry['act'],
    note: AuditNote,
  ): Promise<readonly string[]> => {
    const token = newId()
    const at = clock.now()
    return boxOf(queue).act(token, (index) =>
      [...ids].flatMap(([id, deadAt]) => {
        const entry = { at, act, queue, messageId: id, actor: note.actor, reason: note.reason }
        const gone = index.instances(id).filter((one) => one.deadAt <= deadAt)
        return [
          ...gone.map((one) => removalRecord(id, one.deadAt, token)),
          auditRecord(entry, deadAt, token),
        ]
      }),
    )
  }
  const shelf: StoredShelf = {
    put: async (batch) => {
      for (const [queue, some] of Map.groupBy(batch, (letter) => letter.queue)) {
        await boxOf(queue).put(some)
      }
    },
    list: async (queue, options) => {
      const box = boxOf(queue)
      const index = await box.fresh()
      const { places, cursor } = index.page(options)
      const found = await box.read(places.map(({ offset }) => offset))
      const items = places.flatMap(({ offset }) => found.get(offset) ?? [])
      return { items, cursor }
    },
    get: async (queue, id) => {
      const box = boxOf(queue)
      const place = (await box.fresh()).find(id)
      return place && (await box.read([place.offset])).get(place.offset)
    },
    count: async (queue, filter) => (await boxOf(queue).fresh()).count(filter),
    audit: async (queue, limit) => (await boxOf(queue).fresh()).audit(limit),
    redriven: async (queue, asked, note) => {
      const index = await boxOf(queue).fresh()
      const here = asked.filter(({ id }) => index.find(id) !== undefined)
      const ids = new Map(here.map(({ id, deadAt }) => [id, deadAt]))
      return removed(queue, ids, 'redrive', note)
    },
    discard: async (queue, asked, note) => {
      const index = await boxOf(queue).fresh()
      const here = asked.flatMap((id) => {
        const place = index.find(id)
        return place === undefined ? [] : [[id, place.deadAt] as const]
      })
      return removed(queue, new Map(here), 'discard', note)
    },
  }
  return { shelf, problems: () => [...boxes.values()].flatMap((box) => box.problems()) }
}

/** The topic of one queue and what is known of it. */
interface Box {
  /** With everything that was confirmed before the call. */
  fresh(): Promise<LetterIndex>
  read(offsets: readonly bigint[]): Promise<ReadonlyMap<bigint, DeadLetter>>
  put(batch: readonly Omit<DeadLetter, 'deadAt'>[]): Promise<void>
  /** Answers the ids for which the act was the first. */
  act(
    token: string,
    records: (index: LetterIndex) => readonly LetterRecord[],
  ): Promise<readonly string[]>
  problems(): readonly string[]
}

function openBox(cluster: Cluster, queue: string, ensure: () => Promise<void>): Box {
  const { clock, options } = cluster
  const log = letterLog(cluster, deadTopicOf(options, queue))
  const awaited = new Set<string>()
  let index = letterIndex(awaited)
  let next = 0n
  let readAt = clock.now()
  let running: Promise<unknown> = Promise.resolve()
  let waiting: Promise<LetterIndex> | undefined

  const catchUp = async (): Promise<LetterIndex> => {
    waiting = undefined
    if (clock.now() - readAt > READ_ANEW_MS) {
      index = letterIndex(awaited)
      next = 0n
    }
    const startedAt = clock.now()
    const into = index
    const reached = await log.read(next, (record, offset) => {
      const what = said(record)
      if (what !== undefined) into.apply(what, offset)
      next = offset + 1n
    })
    readAt = startedAt
    if (reached !== undefined) {
      next = reached
      return index
    }
    // Nobody has made it yet, or it is not the one that we knew.
    const isOther = next > 0n
    index = letterIndex(awaited)
    next = 0n
    return isOther ? catchUp() : index
  }
  /** One after the other; who comes while one is running shares the next. */
  const fresh = (): Promise<LetterIndex> => {
    waiting ??= running.catch(() => {}).then(catchUp)
    running = waiting
    return waiting
  }
  const append = async (records: readonly LetterRecord[]): Promise<void> => {
    try {
      await log.append(records)
    } catch (error) {
      if (!isMissing(error)) throw error
      await ensure()
      await log.append(records)
    }
  }
  return {
    fresh,
    problems: log.problems,
    read: (offsets) => lettersAt(log, offsets),
    put: async (batch) => {
      const known = await fresh()
      const newest = [...new Map(batch.map((letter) => [letter.envelope.id, letter])).values()]
      const now = clock.now()
      const groups = newest.map((letter) => recordsOf(letter, known, now))
      for (const part of batches(groups, options.maxMessageBytes)) await append(part)
    },
    act: async (token, records) => {
      awaited.add(token)
      try {
        const known = await fresh()
        const all = [...records(known), ...known.oldAudits().map(auditRemovalRecord)]
        if (all.length === 0) return []
        await append(all)
        return [...(await fresh()).doneBy(token)]
      } finally {
        awaited.delete(token)
      }
    },
  }
}

/** The letter, and what removes those of the same id that it takes the place of. */
function recordsOf(
  letter: Omit<DeadLetter, 'deadAt'>,
  index: LetterIndex,
  now: number,
): readonly LetterRecord[] {
  const { id } = letter.envelope
  const before = index.instances(id)
  const deadAt = Math.max(now, (before.at(-1)?.deadAt ?? 0) + 1)
  return [
    letterRecord({ ...letter, deadAt }),
    ...before.map((one) => removalRecord(id, one.deadAt, BY_PUT)),
  ]
}

/** A letter and its removals stay together, and no record batch is larger than the topic takes. */
function* batches(
  groups: readonly (readonly LetterRecord[])[],
  maxBytes: number,
): Generator<readonly LetterRecord[]> {
  let part: LetterRecord[] = []
  let bytes = 0
  for (const group of groups) {
    const size = BATCH_FRAME + group.reduce((sum, one) => sum + sizeOf(one), 0)
    if (part.length > 0 && bytes + size > maxBytes) {
      yield part
      part = []
      bytes = 0
    }
    part.push(...group)
    bytes += size
  }
  if (part.length > 0) yield part
}

function sizeOf({ key, value, headers }: LetterRecord): number {
  const inHeaders = [...headers].flat().reduce((sum, one) => sum + one.length, 0)
  return key.length + (value?.length ?? 0) + inHeaders
}

async function lettersAt(
  log: LetterLog,
  offsets: readonly bigint[],
): Promise<ReadonlyMap<bigint, DeadLetter>> {
  const found = new Map<bigint, DeadLetter>()
  const growing = offsets.toSorted((a, b) => (a < b ? -1 : 1))
  await log.at(growing, (record, offset) => {
    const letter = letterOf(record)
    if (letter !== undefined) found.set(offset, letter)
  })
  return found
}
