import type { Sent, Settled } from '../../model/delivery.ts'
import { MillraceError } from '../../model/errors.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import { clearError } from '../../sql/sqlite-fault.ts'
import {
  inTransaction,
  isOpenHandle,
  isSqliteHandle,
  prepared,
  sqliteIdentity,
} from '../../sql/sqlite-handle.ts'
import { allRefused } from '../../transport/atomic.ts'
import type { Transaction } from '../../transport/transport.ts'
import { storeBatch } from './send.ts'
import { settleBatch } from './settle.ts'
import { RELEASE_SAVEPOINT, ROLLBACK_TO_SAVEPOINT, SAVEPOINT } from './statements.ts'
import type { Store } from './store.ts'

/** Our acts in the user's open transaction on their own handle; undefined when it is on another database. */
export function transactionOf(store: Store, tx: unknown): Transaction | undefined {
  if (!isSqliteHandle(tx)) return undefined
  if (!isOpenHandle(tx)) throw noTransaction('is closed; pass an open one')
  if (sqliteIdentity(tx) !== store.identity) return undefined
  if (!inTransaction(tx)) {
    throw noTransaction(
      'has no open transaction; begin one first (BEGIN IMMEDIATE), then send, then commit',
    )
  }
  return {
    synchronous: true,
    send(queue, batch, options) {
      let undone: readonly Sent[] | undefined
      const sent = within(
        tx,
        () => storeBatch(tx, store.clock.now(), queue, batch),
        ({ outcomes }) => {
          undone = options?.atomic === true ? allRefused(outcomes) : undefined
          return undone === undefined
        },
      )
      if (undone !== undefined) return undone
      if (sent.stored > 0) wakeAfterCommit(store)
      return sent.outcomes
    },
    ack: (_queue, batch) =>
      within(tx, (): readonly Settled[] =>
        settleBatch(
          tx,
          batch.map((delivery) => ({ as: 'acked', delivery })),
          store.clock.now(),
        ),
      ),
  }
}

/** An act that fails, or is not to be kept, leaves nothing in a transaction that the user may still commit. */
function within<T>(
  handle: SqliteHandle,
  act: () => T,
  keep: (value: T) => boolean = () => true,
): T {
  prepared(handle, SAVEPOINT).run()
  try {
    const value = act()
    if (!keep(value)) prepared(handle, ROLLBACK_TO_SAVEPOINT).run()
    prepared(handle, RELEASE_SAVEPOINT).run()
    return value
  } catch (error) {
    // A full disk may have rolled back the whole transaction, and then the savepoint is gone too.
    if (inTransaction(handle)) {
      prepared(handle, ROLLBACK_TO_SAVEPOINT).run()
      prepared(handle, RELEASE_SAVEPOINT).run()
    }
    throw clearError(error)
  }
}

/**
 * A synchronous transaction has usually committed once the event loop turns; a longer one is noticed by the polling.
 */
function wakeAfterCommit({ clock, bell, closing }: Store): void {
  clock.after(0, () => {
    if (!closing.aborted) bell.ring()
  })
}

function noTransaction(what: string): MillraceError {
  return new MillraceError(
    'MILLRACE_FOREIGN_TRANSACTION',
    `the SQLite handle given as tx ${what}; nothing was stored`,
  )
}
