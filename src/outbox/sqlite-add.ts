import type { Clock } from '../model/clock.ts'
import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import type { SqliteHandle } from '../sql/executor.ts'
import { prepared } from '../sql/sqlite-handle.ts'
import { userTransaction, withinSavepoint } from '../sql/sqlite-user-transaction.ts'
import type { OutboxTransaction } from './outbox.ts'
import { columnsOf, ROW_TYPE } from './row.ts'
import { ADD } from './sqlite-statements.ts'

export interface AddContext {
  readonly identity: string | SqliteHandle
  readonly clock: Clock
  readonly added: () => void
}

/** The outbox in the user's open transaction on their own handle; undefined when it is on another database. */
export function addsIn(context: AddContext, tx: unknown): OutboxTransaction | undefined {
  const handle = userTransaction(tx, context.identity)
  return handle && addsOn(context, handle)
}

function addsOn(context: AddContext, handle: SqliteHandle): OutboxTransaction {
  return {
    synchronous: true,
    add: (queue, batch) => {
      const sent = withinSavepoint(handle, () =>
        batch.map((envelope) => addOne(handle, context.clock.now(), queue, envelope)),
      )
      context.added()
      return sent
    },
  }
}

function addOne(handle: SqliteHandle, now: number, queue: string, envelope: Envelope): Sent {
  const { id, priority, body } = envelope
  const columns = columnsOf(envelope)
  const { changes } = prepared(handle, ADD).run(
    id,
    queue,
    columns.aggregateId,
    ROW_TYPE,
    now,
    now,
    columns.idempotencyKey,
    columns.orderingKey,
    priority,
    columns.delayMs,
    columns.readyAt,
    columns.remember,
    columns.share,
    columns.headers,
    body,
  )
  return { ok: true, id, duplicate: Number(changes) === 0 }
}
