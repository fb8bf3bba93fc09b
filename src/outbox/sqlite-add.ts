import type { Clock } from '../model/clock.ts'
import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import { MillraceError } from '../model/errors.ts'
import type { SqliteHandle } from '../sql/executor.ts'
import {
  inTransaction,
  isOpenHandle,
  isSqliteHandle,
  prepared,
  sqliteIdentity,
} from '../sql/sqlite-handle.ts'
import type { OutboxTransaction } from './outbox.ts'
import { columnsOf, ROW_TYPE } from './row.ts'
import { ADD, RELEASE, ROLLBACK_TO, SAVEPOINT } from './sqlite-statements.ts'

export interface AddContext {
  readonly identity: string | SqliteHandle
  readonly clock: Clock
  readonly added: () => void
}

/** The outbox in the user's open transaction on their own handle; undefined when it is on another database. */
export function addsIn(context: AddContext, tx: unknown): OutboxTransaction | undefined {
  if (!isSqliteHandle(tx)) return undefined
  if (!isOpenHandle(tx)) throw noTransaction('is closed; pass an open one')
  if (sqliteIdentity(tx) !== context.identity) return undefined
  if (!inTransaction(tx)) {
    throw noTransaction(
      'has no open transaction; begin one first (BEGIN IMMEDIATE), then send, then commit',
    )
  }
  return {
    synchronous: true,
    add: (queue, batch) => {
      const sent = within(tx, () =>
        batch.map((envelope) => addOne(tx, context.clock.now(), queue, envelope)),
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
    columns.headers,
    body,
  )
  return { ok: true, id, duplicate: Number(changes) === 0 }
}

/** A failed batch leaves nothing half done in a transaction that the user may still commit. */
function within<T>(handle: SqliteHandle, act: () => T): T {
  prepared(handle, SAVEPOINT).run()
  try {
    const value = act()
    prepared(handle, RELEASE).run()
    return value
  } catch (error) {
    // A full disk may have rolled back the whole transaction, and then the savepoint is gone too.
    if (inTransaction(handle)) {
      prepared(handle, ROLLBACK_TO).run()
      prepared(handle, RELEASE).run()
    }
    throw error
  }
}

function noTransaction(what: string): MillraceError {
  return new MillraceError(
    'MILLRACE_FOREIGN_TRANSACTION',
    `the SQLite handle given as tx ${what}; nothing was stored`,
  )
}
