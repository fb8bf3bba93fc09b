import type { Envelope } from '../../model/envelope.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import { prepared } from '../../sql/sqlite-handle.ts'
import { headersText } from './row.ts'
import { INSERT_MESSAGE, INSERT_MESSAGES, REMOVE_NEWEST } from './statements.ts'
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
  const values = envelopes.flatMap((envelope) => params(inserting, envelope))
  const changes = Number(prepared(handle, INSERT_MESSAGES).run(...values).changes)
  if (changes === envelopes.length) return true
  if (changes > 0) prepared(handle, REMOVE_NEWEST).run(changes)
  return false
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
