import type { DeadLetter } from '../../model/dead-letter.ts'
import { OptionsError } from '../../model/errors.ts'
import { read, readString } from '../../model/probe.ts'
import { show } from '../../model/problems.ts'
import type {
  AuditEntry,
  Shelf,
  ShelfFilter,
  ShelfListOptions,
  ShelfPage,
} from '../../transport/transport.ts'
import { letterOf, type Stored, storedLetter } from './letter.ts'
import type { QueueNames } from './names.ts'
import { moveAll } from './redrive.ts'
import { deadCount, scan } from './scan.ts'
import { needOpen, type Store } from './store.ts'
import { parsed } from './wire.ts'

export function shelf(store: Store): Shelf {
  return {
    list: (queue, options) => list(store, needOpen(store, queue), options),
    async get(queue, id) {
      const names = needOpen(store, queue)
      const stored = await storedLetter(store, names, id)
      return stored && letterOf(names, stored)
    },
    count: (queue, filter) => count(store, needOpen(store, queue), filter),
    redrive: (queue, ids, audit) =>
      moveAll(store, needOpen(store, queue), ids, { ...audit, act: 'redrive' }),
    discard: (queue, ids, audit) =>
      moveAll(store, needOpen(store, queue), ids, { ...audit, act: 'discard' }),
    audit: (queue, limit) => auditOf(store, needOpen(store, queue), limit),
  }
}

/**
 * Sequences are the order of death, so a cursor is one. A stream is read forwards only: parts of it, from its end to its
 * beginning, each wider than the one before, until the page is full.
 */
async function list(
  store: Store,
  names: QueueNames,
  options: ShelfListOptions,
): Promise<ShelfPage> {
  const { state } = await store.client.manager.streams.info(names.shelf)
  let to = Math.min(state.last_seq, before(options))
  const found: Stored[] = []
  for (let width = options.limit + 1; found.length <= options.limit; width *= 4) {
    if (to < state.first_seq) break
    const from = Math.max(state.first_seq, to - width + 1)
    const part = await readPart(store, names, { from, to, filter: options })
    found.push(...part.reverse())
    to = from - 1
  }
  const items = found.slice(0, options.limit)
  const last = items.at(-1)
  return {
    items: items.map((stored) => letterOf(names, stored)),
    cursor: found.length > options.limit && last ? String(last.seq) : null,
  }
}

function before({ cursor }: Pick<ShelfListOptions, 'cursor'>): number {
  if (cursor === undefined) return Number.POSITIVE_INFINITY
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor) - 1
  throw new OptionsError('dead letters', [
    `cursor: expected the cursor of a page before, got ${show(cursor)}`,
  ])
}

interface Part {
  readonly from: number
  readonly to: number
  readonly filter: Omit<ShelfListOptions, 'limit'>
}

async function readPart(
  store: Store,
  names: QueueNames,
  { from, to, filter }: Part,
): Promise<Stored[]> {
  const found: Stored[] = []
  const headersOnly = filter.bodies === false
  const options = { stream: names.shelf, subject: names.deadAll, from, to, headersOnly }
  for await (const part of scan(store, options)) {
    found.push(...part.filter((stored) => matches(letterOf(names, stored), filter)))
  }
  return found
}

function matches({ errorClass, deadAt }: DeadLetter, filter: ShelfFilter): boolean {
  if (filter.errorClass !== undefined && errorClass !== filter.errorClass) return false
  return filter.deadBefore === undefined || deadAt <= filter.deadBefore
}

async function count(store: Store, names: QueueNames, filter: ShelfFilter): Promise<number> {
  if (filter.errorClass === undefined && filter.deadBefore === undefined) {
    return await deadCount(store, names)
  }
  let counted = 0
  const options = {
    stream: names.shelf,
    subject: names.deadAll,
    from: 1,
    to: Number.MAX_SAFE_INTEGER,
  }
  for await (const part of scan(store, { ...options, headersOnly: true })) {
    counted += part.filter((stored) => matches(letterOf(names, stored), filter)).length
  }
  return counted
}

async function auditOf(
  store: Store,
  names: QueueNames,
  limit: number,
): Promise<readonly AuditEntry[]> {
  const all: AuditEntry[] = []
  const options = {
    stream: names.shelf,
    subject: names.auditAll,
    from: 1,
    to: Number.MAX_SAFE_INTEGER,
  }
  for await (const part of scan(store, { ...options, headersOnly: false })) {
    all.push(...part.map((stored) => entryOf(names, stored)))
    all.splice(0, Math.max(0, all.length - limit))
  }
  return all.reverse()
}

function entryOf({ queue }: QueueNames, { data, deadAt }: Stored): AuditEntry {
  const value = parsed(new TextDecoder().decode(data))
  return {
    at: deadAt,
    act: read(value, 'act') === 'redrive' ? 'redrive' : 'discard',
    queue,
    messageId: readString(value, 'messageId') ?? '',
    actor: readString(value, 'actor') ?? '',
    reason: readString(value, 'reason') ?? '',
  }
}
