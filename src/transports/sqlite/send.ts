import type { Sent } from '../../model/delivery.ts'
import type { Envelope, RememberedKey } from '../../model/envelope.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import { asRow, prepared } from '../../sql/sqlite-handle.ts'
import { duplicateOf, refused, stored } from '../../transport/outcomes.ts'
import { refusalOf } from '../../transport/refusal.ts'
import { givePlaces } from './fair-places.ts'
import { areAlike, type Inserting, insertAlike, insertOne, insertTen } from './insert.ts'
import {
  ADD_TO_TOTAL,
  HAS_DEAD_LETTER,
  HAS_MESSAGE,
  INSERT_MANY_ROWS,
  INSERT_ROWS,
  LAST_DEAD_ID,
  PRUNE_KEYS,
  RECALL_KEY,
  REMEMBER_KEY,
} from './statements.ts'
import { findQueue, type QueueRow } from './store.ts'
import { sqliteBounds } from './traits.ts'

export interface SentBatch {
  readonly outcomes: readonly Sent[]
  /** Absent when there is no such queue. */
  readonly queueId: number | undefined
  readonly stored: number
}

interface Placing extends Inserting {
  /** The greatest id among the dead letters: ids grow with time, so that few messages need be looked up there. */
  readonly lastDeadId: string | undefined
  stored: number
}

/** Stores a batch inside the open transaction of this handle; one bad item does not hinder the others. */
export function storeBatch(
  handle: SqliteHandle,
  now: number,
  queueName: string,
  batch: readonly Envelope[],
): SentBatch {
  const queue = findQueue(handle, queueName)
  if (!queue) {
    return { outcomes: batch.map(() => refused('notFound')), queueId: undefined, stored: 0 }
  }
  const lastDeadId = lastDeadIdOf(handle, queue)
  const placing: Placing = { handle, queue, now, lastDeadId, stored: 0 }
  const outcomes = storeAll(placing, batch)
  const { stored } = placing
  if (stored > 0) prepared(handle, ADD_TO_TOTAL).run(stored, queue.id)
  if (batch.some(({ fairKey }) => fairKey !== undefined)) givePlaces(handle, queue.id)
  return { outcomes, queueId: queue.id, stored }
}

/** Forgets a few expired keys; called with each batch that brings new ones, so that they never pile up. */
export function pruneKeys(handle: SqliteHandle, now: number, batch: readonly Envelope[]): void {
  const brought = batch.reduce((sum, envelope) => sum + (envelope.remember?.length ?? 0), 0)
  if (brought > 0) prepared(handle, PRUNE_KEYS).run(now, 2 * brought + 10)
}

/** Many at once where nothing but the id can be in the way, else one by one. */
function storeAll(placing: Placing, batch: readonly Envelope[]): readonly Sent[] {
  const outcomes: Sent[] = []
  // From here on to this one all are simple and alike; each message is looked at once.
  let alikeTo = 0
  for (let at = 0; at < batch.length; at = outcomes.length) {
    if (alikeTo <= at) alikeTo = endOfAlike(placing, batch, at)
    const rows = rowsFor(placing, alikeTo - at)
    const together =
      rows > 1
        ? insertAlike(placing, batch, at, rows)
        : areSimple(placing, batch, at) && insertTen(placing, batch, at)
    const count = rows > 1 ? rows : together ? INSERT_ROWS : 1
    if (together) placing.stored += count
    for (const envelope of batch.slice(at, at + count)) {
      outcomes.push(together ? stored(envelope.id) : storeOne(placing, envelope))
    }
  }
  return outcomes
}

/** The first that is not simple, or not like the one at `from`; `from` itself when that one is not simple. */
function endOfAlike(placing: Placing, batch: readonly Envelope[], from: number): number {
  const first = batch[from]
  let to = from
  for (; to < batch.length; to += 1) {
    const envelope = batch[to]
    if (!first || !envelope || !areAlike(first, envelope) || !isSimple(placing, envelope)) break
  }
  return to
}

/** How many of so many that are alike go in at once: as long as there is room for all of them. */
function rowsFor({ queue, stored }: Placing, alike: number): number {
  const { maxDepth = Number.POSITIVE_INFINITY, total } = queue
  const most = Math.min(alike, maxDepth - total - stored)
  if (most >= INSERT_MANY_ROWS) return INSERT_MANY_ROWS
  return most >= INSERT_ROWS ? INSERT_ROWS : 1
}

/** Ten that are simple, if not alike. */
function areSimple(placing: Placing, batch: readonly Envelope[], from: number): boolean {
  const { queue, stored } = placing
  if (batch.length - from < INSERT_ROWS) return false
  if (queue.maxDepth !== undefined && queue.total + stored + INSERT_ROWS > queue.maxDepth)
    return false
  for (let i = from; i < from + INSERT_ROWS; i += 1) {
    const envelope = batch[i]
    if (envelope === undefined || !isSimple(placing, envelope)) return false
  }
  return true
}

/** Nothing but its id can be in its way. */
function isSimple(placing: Placing, envelope: Envelope): boolean {
  return (
    envelope.remember === undefined &&
    envelope.orderingKey === undefined &&
    envelope.fairKey === undefined &&
    !mayBeDead(placing, envelope) &&
    refusalOf(envelope, sqliteBounds) === undefined
  )
}

/** Ids are ASCII, which JavaScript and SQLite put in the same order. */
function mayBeDead({ lastDeadId }: Placing, { id }: Envelope): boolean {
  return lastDeadId !== undefined && id <= lastDeadId
}

function lastDeadIdOf(handle: SqliteHandle, queue: QueueRow): string | undefined {
  const { id } = asRow(prepared(handle, LAST_DEAD_ID).get(queue.id))
  return typeof id === 'string' ? id : undefined
}

function storeOne(placing: Placing, envelope: Envelope): Sent {
  const { handle, queue, now } = placing
  const { id, remember = [] } = envelope
  const bad = refusalOf(envelope, sqliteBounds)
  if (bad) return bad
  if (mayBeDead(placing, envelope) && prepared(handle, HAS_DEAD_LETTER).get(queue.id, id))
    return duplicateOf(id)
  const known = remember.length > 0 ? recall(placing, id, remember) : undefined
  if (known) return known
  if (queue.maxDepth !== undefined && queue.total + placing.stored >= queue.maxDepth) {
    return isStored(placing, id) ? duplicateOf(id) : refused('full', { retryable: true })
  }
  if (!insertOne(placing, envelope)) return duplicateOf(id)
  placing.stored += 1
  for (const key of remember) {
    const { kind, key: text, fingerprint = null, windowMs } = key
    const expiresAt = now + windowMs
    prepared(handle, REMEMBER_KEY).run(queue.id, kind, text, fingerprint, id, expiresAt)
  }
  return stored(id)
}

function recall(placing: Placing, id: string, keys: readonly RememberedKey[]): Sent | undefined {
  const { handle, queue, now } = placing
  if (isStored(placing, id)) return duplicateOf(id)
  let first: string | undefined
  for (const { kind, key, fingerprint = null } of keys) {
    const found = prepared(handle, RECALL_KEY).get(queue.id, kind, key, now)
    if (found === undefined) continue
    const known = asRow(found)
    const knownId = String(known.message_id)
    if (kind === 'idempotency' && known.fingerprint !== fingerprint) {
      return refused('conflict', { id: knownId })
    }
    first ??= knownId
  }
  return first === undefined ? undefined : duplicateOf(first)
}

function isStored({ handle, queue }: Placing, id: string): boolean {
  return prepared(handle, HAS_MESSAGE).get(queue.id, id) !== undefined
}
