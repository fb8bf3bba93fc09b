import type { AttemptHistory } from '../../model/history.ts'
import { afterCrash } from '../../model/history.ts'
import { AGEING_MS, type LineHead, lineTurn } from '../../transport/ageing.ts'
import { type DeadLetters, deadLetters } from '../../transport/dead-letters.ts'
import type { Gauge, QueueSpec } from '../../transport/transport.ts'
import type { Entry } from './entry.ts'
import { type FairLine, fairLine } from './fair-line.ts'
import { type Heap, heap } from './heap.ts'
import { type KeyLines, keyLines } from './key-lines.ts'
import { type RememberedKeys, rememberedKeys } from './remembered-keys.ts'
import { shedFrom } from './shed.ts'
import { memoryTraits } from './traits.ts'

const PRIORITIES: number = memoryTraits.priorities

/**
 * One queue: every message is in exactly one heap, and every step costs O(log n), however long the
 * backlog.
 */
export interface MemoryQueue {
  spec: QueueSpec
  paused: boolean
  readonly entries: ReadonlyMap<string, Entry>
  readonly keys: RememberedKeys
  readonly dead: DeadLetters
  /** Receives that wait; called when there may be something for them. */
  readonly waiting: Set<() => void>
  /** Puts a message in line, or behind the earlier ones of its ordering key; ready when `readyAt` has come. */
  place(entry: Entry, readyAt: number, now: number): void
  /** Up to `max` ready messages, now in flight; a quarantined one comes alone and first. */
  claim(max: number, leaseMs: number, now: number): readonly Entry[]
  /** Whether this handing-out is still in force. */
  holds(entry: Entry, fence: bigint, now: number): boolean
  renew(entry: Entry, leaseMs: number, now: number): void
  /** Puts back what is in flight. */
  release(entry: Entry, release: ReleaseEntry, now: number): void
  /** What would go when the queue is full; see ShedOptions of the seam. */
  firstToGo(max: number, upTo: number): readonly Entry[]
  /** It has ended; the next one of its ordering key stands in line then. */
  remove(entry: Entry, now: number): void
  /** It has died: as `remove`, but where deaths halt their key nothing of it goes on. */
  bury(entry: Entry, now: number): void
  /** Lets a key go on, if this message halted it. */
  skip(key: string, messageId: string, now: number): void
  readonly halted: Pick<KeyLines, 'halted' | 'haltedKeys'>
  /** Moves what fell due: scheduled messages become ready, vanished holders lose theirs. */
  sweep(now: number): void
  /** When `sweep` has something to do next. */
  nextDueAt(): number | undefined
  gauge(now: number): Gauge
  wake(): void
}

export interface ReleaseEntry {
  readonly history: AttemptHistory
  readonly alone: boolean
  readonly readyAt: number
}

export interface Lines {
  /** One line per priority. */
  readonly ready: readonly Heap<Entry>[]
  /** The same for those that have a fair key. */
  readonly fair: readonly FairLine[]
  readonly quarantined: Heap<Entry>
  readonly scheduled: Heap<Entry>
  readonly leased: Heap<Entry>
}

export function memoryQueue(spec: QueueSpec, nextFence: () => bigint): MemoryQueue {
  const lines = newLines()
  const entries = new Map<string, Entry>()
  const ordered = keyLines()

  const place = (entry: Entry, readyAt: number, now: number): void => {
    entry.readyAt = readyAt
    entries.set(entry.envelope.id, entry)
    if (ordered.enter(entry)) stand(entry, now)
    else entry.state = 'behind'
  }
  const stand = (entry: Entry | undefined, now: number): void => {
    if (entry === undefined) return
    entry.state = entry.readyAt <= now ? 'ready' : 'scheduled'
    lineOf(lines, entry).push(entry)
  }
  const end = (entry: Entry): void => {
    leave(entry)
    entry.state = 'gone'
    entries.delete(entry.envelope.id)
  }
  const leave = (entry: Entry): void => {
    if (entry.state !== 'behind') lineOf(lines, entry).remove(entry)
  }
  const lease = (entry: Entry, leaseMs: number, now: number): void => {
    entry.leaseEndsAt = now + leaseMs
    entry.state = 'in flight'
    lines.leased.push(entry)
  }
  const sweep = (now: number): void => sweepLines(lines, place, now)
  const release = (entry: Entry, change: ReleaseEntry, now: number): void => {
    leave(entry)
    entry.history = change.history
    entry.alone = change.alone
    place(entry, change.readyAt, now)
  }

  const queue: MemoryQueue = {
    spec,
    paused: false,
    entries,
    keys: rememberedKeys(),
    dead: deadLetters(),
    waiting: new Set(),
    place,
    sweep,
    release,
    claim(max, leaseMs, now) {
      sweep(now)
      if (queue.paused) return []
      const claimed = popReady(lines, max, queue.spec.ageingMs)
      for (const entry of claimed) {
        entry.fence = nextFence()
        entry.deliveries += 1
        lease(entry, leaseMs, now)
      }
      return claimed
    },
    holds(entry, fence, now) {
      sweep(now)
      return entry.state === 'in flight' && entry.fence === fence
    },
    renew(entry, leaseMs, now) {
      leave(entry)
      lease(entry, leaseMs, now)
    },
    firstToGo: (max, upTo) => shedFrom(lines, max, upTo),
    remove(entry, now) {
      end(entry)
      stand(ordered.leave(entry), now)
    },
    bury(entry, now) {
      if (queue.spec.onDead !== 'halt-key') return queue.remove(entry, now)
      end(entry)
      ordered.halt(entry, now)
    },
    skip: (key, messageId, now) => stand(ordered.skip(key, messageId), now),
    halted: ordered,
    nextDueAt: () => earliest(lines.scheduled.peek()?.readyAt, lines.leased.peek()?.leaseEndsAt),
    gauge: (now) => gaugeOf(lines, queue, ordered.size, now),
    wake: () => wakeAll(queue.waiting),
  }
  return queue
}

function wakeAll(waiting: ReadonlySet<() => void>): void {
  for (const wake of [...waiting]) wake()
}

function newLines(): Lines {
  const inOrder = (a: Entry, b: Entry): boolean =>
    a.readyAt === b.readyAt ? a.seq < b.seq : a.readyAt < b.readyAt
  return {
    ready: Array.from({ length: PRIORITIES }, () => heap<Entry>(inOrder)),
    fair: Array.from({ length: PRIORITIES }, fairLine),
    quarantined: heap<Entry>(inOrder),
    scheduled: heap<Entry>(inOrder),
    leased: heap<Entry>((a, b) => a.leaseEndsAt < b.leaseEndsAt),
  }
}

function lineOf(lines: Lines, entry: Entry): Heap<Entry> {
  if (entry.state === 'in flight') return lines.leased
  if (entry.state === 'scheduled') return lines.scheduled
  if (entry.alone) return lines.quarantined
  const { fairKey, priority } = entry.envelope
  const line = fairKey === undefined ? lines.ready[priority] : lines.fair[priority]
  if (!line) throw new Error(`expected a priority of 0 to ${PRIORITIES - 1}`)
  return line
}

function sweepLines(lines: Lines, place: MemoryQueue['place'], now: number): void {
  const { scheduled, leased } = lines
  for (let next = scheduled.peek(); next && next.readyAt <= now; next = scheduled.peek()) {
    scheduled.pop()
    place(next, next.readyAt, now)
  }
  for (let next = leased.peek(); next && next.leaseEndsAt <= now; next = leased.peek()) {
    leased.pop()
    next.history = afterCrash(next.history, now)
    next.alone = true
    place(next, now, now)
  }
}

function popReady(lines: Lines, max: number, ageingMs: number = AGEING_MS): readonly Entry[] {
  const suspect = lines.quarantined.pop()
  if (suspect) return [suspect]
  const claimed: Entry[] = []
  while (claimed.length < max) {
    const heads = [...lines.ready.flatMap(headOf), ...lines.fair.flatMap(headOf)]
    const turn = lineTurn(heads, ageingMs)
    if (turn === undefined) break
    const { line } = turn.head
    for (let oldest = oldestIn(line); oldest !== undefined; oldest = oldestIn(line)) {
      if (claimed.length >= max || oldest.readyAt > turn.untilReadyAt) break
      const next = line.pop()
      if (next !== undefined) claimed.push(next)
    }
  }
  return claimed
}

/** A line that goes by fair keys stands where its oldest stands, so that none in it waits for ever. */
function oldestIn(line: Heap<Entry> | FairLine): Entry | undefined {
  return 'oldest' in line ? line.oldest() : line.peek()
}

function headOf(
  line: Heap<Entry> | FairLine,
  priority: number,
): readonly (LineHead & { readonly line: Heap<Entry> })[] {
  const first = oldestIn(line)
  return first === undefined ? [] : [{ priority, readyAt: first.readyAt, line }]
}

function gaugeOf(lines: Lines, queue: MemoryQueue, behind: number, now: number): Gauge {
  queue.sweep(now)
  const ready = [...lines.ready, ...lines.fair, lines.quarantined]
  const oldestAt = earliest(...ready.map((line) => oldestIn(line)?.readyAt))
  return {
    depth: ready.reduce((sum, line) => sum + line.items.length, behind),
    scheduled: lines.scheduled.items.length,
    inFlight: lines.leased.items.length,
    dead: queue.dead.size(),
    ageMs: oldestAt === undefined ? 0 : now - oldestAt,
    paused: queue.paused,
  }
}

function earliest(...moments: readonly (number | undefined)[]): number | undefined {
  return moments.reduce(
    (a, b) => (a === undefined || (b !== undefined && b < a) ? b : a),
    undefined,
  )
}
