import type { Envelope } from '../../model/envelope.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import { prepared } from '../../sql/sqlite-handle.ts'
import { headersText } from './row.ts'
import {
  INSERT_ALIKE,
  INSERT_MESSAGE,
  INSERT_MESSAGES,
  INSERT_ROWS,
  REMOVE_NEWEST,
} from './statements.ts'
import type { QueueRow } from './store.ts'

export interface Inserting {
  readonly handle: SqliteHandle
  readonly queue: QueueRow
  readonly now: number
  /** Whether this client binds numbered parameters; better-sqlite3 cannot. */
  readonly numbered: boolean
}

/** False when the id is stored already. */
export function insertOne(inserting: Inserting, envelope: Envelope): boolean {
  const { changes } = prepared(inserting.handle, INSERT_MESSAGE).run(...params(inserting, envelope))
  return Number(changes) > 0
}

/** `INSERT_ROWS` of them from this one on: all, or none when one of the ids is stored already. */
export function insertMany(
  inserting: Inserting,
  envelopes: readonly Envelope[],
  from: number,
): boolean {
  const { handle } = inserting
  const [sql, values] = areAlike(inserting, envelopes, from)
    ? [INSERT_ALIKE, paramsOfAlike(inserting, envelopes, from)]
    : [INSERT_MESSAGES, paramsOfAll(inserting, envelopes, from)]
  const changes = Number(prepared(handle, sql).run(...values).changes)
  if (changes === INSERT_ROWS) return true
  if (changes > 0) prepared(handle, REMOVE_NEWEST).run(changes)
  return false
}

/** Those of one `sendBatch` are, and single ones without options. */
function areAlike({ numbered }: Inserting, envelopes: readonly Envelope[], from: number): boolean {
  if (!numbered) return false
  const first = envelopes[from] as Envelope
  for (let i = from + 1; i < from + INSERT_ROWS; i += 1) {
    if (!isAlike(first, envelopes[i] as Envelope)) return false
  }
  return first.idempotencyKey === undefined
}

function isAlike(a: Envelope, b: Envelope): boolean {
  return (
    a.headers === b.headers &&
    a.priority === b.priority &&
    a.delayMs === b.delayMs &&
    a.readyAt === b.readyAt &&
    a.orderingKey === b.orderingKey &&
    b.idempotencyKey === undefined
  )
}

function paramsOfAlike(
  inserting: Inserting,
  envelopes: readonly Envelope[],
  from: number,
): readonly unknown[] {
  const [queueId, , state, priority, readyAt, sentAt, , orderingKey, headers] = params(
    inserting,
    envelopes[from] as Envelope,
  )
  const values = [queueId, state, priority, readyAt, sentAt, orderingKey, headers]
  for (let i = from; i < from + INSERT_ROWS; i += 1) {
    const { id, body } = envelopes[i] as Envelope
    values.push(id, body)
  }
  return values
}

function paramsOfAll(
  inserting: Inserting,
  envelopes: readonly Envelope[],
  from: number,
): readonly unknown[] {
  const values: unknown[] = []
  for (let i = from; i < from + INSERT_ROWS; i += 1) {
    values.push(...params(inserting, envelopes[i] as Envelope))
  }
  return values
}

function params({ queue, now }: Inserting, envelope: Envelope): readonly unknown[] {
  const { id, priority, delayMs = 0, readyAt = now + delayMs } = envelope
  const scheduled = readyAt > now
  return [
    queue.id,
    id,
    scheduled ? 1 : 0,
    priority,
    scheduled ? readyAt : now,
    now,
    envelope.idempotencyKey ?? null,
    envelope.orderingKey ?? null,
    headersText(envelope.headers),
    envelope.body,
  ]
}
