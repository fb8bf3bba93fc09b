import type { Envelope } from '../../model/envelope.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import { prepared, sqliteClient } from '../../sql/sqlite-handle.ts'
import { headersText } from './row.ts'
import { INSERT_ALIKE, INSERT_MESSAGE, INSERT_MESSAGES, REMOVE_NEWEST } from './statements.ts'
import type { QueueRow } from './store.ts'

export interface Inserting {
  readonly handle: SqliteHandle
  readonly queue: QueueRow
  readonly now: number
}

/** False when the id is stored already. */
export function insertOne(inserting: Inserting, envelope: Envelope): boolean {
  const { changes } = prepared(inserting.handle, INSERT_MESSAGE).run(...params(inserting, envelope))
  return Number(changes) > 0
}

/** `INSERT_ROWS` at once: all, or none when one of the ids is stored already. */
export function insertMany(inserting: Inserting, envelopes: readonly Envelope[]): boolean {
  const { handle } = inserting
  const [first] = envelopes
  const { changes } =
    first !== undefined && areAlike(inserting, first, envelopes)
      ? prepared(handle, INSERT_ALIKE).run(...paramsOfAlike(inserting, first, envelopes))
      : prepared(handle, INSERT_MESSAGES).run(
          ...envelopes.flatMap((envelope) => params(inserting, envelope)),
        )
  if (Number(changes) === envelopes.length) return true
  if (Number(changes) > 0) prepared(handle, REMOVE_NEWEST).run(Number(changes))
  return false
}

/** Those of one `sendBatch` are, and single ones without options. better-sqlite3 cannot bind numbered parameters. */
function areAlike({ handle }: Inserting, first: Envelope, all: readonly Envelope[]): boolean {
  return sqliteClient(handle) === 'node:sqlite' && all.every((one) => isAlike(first, one))
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
  first: Envelope,
  envelopes: readonly Envelope[],
): readonly unknown[] {
  const [queueId, , state, priority, readyAt, sentAt, , orderingKey, headers] = params(
    inserting,
    first,
  )
  const values = [queueId, state, priority, readyAt, sentAt, orderingKey, headers]
  for (const { id, body } of envelopes) values.push(id, body)
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
