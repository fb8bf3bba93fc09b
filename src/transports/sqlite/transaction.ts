import type { Sent, Settled } from '../../model/delivery.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import { userTransaction, withinSavepoint } from '../../sql/sqlite-user-transaction.ts'
import { allRefused } from '../../transport/atomic.ts'
import type { Transaction } from '../../transport/transport.ts'
import { storeBatch } from './send.ts'
import { settleBatch } from './settle.ts'
import type { Store } from './store.ts'

/** Our acts in the user's open transaction on their own handle; undefined when it is on another database. */
export function transactionOf(store: Store, tx: unknown): Transaction | undefined {
  const handle = userTransaction(tx, store.identity)
  return handle && transactionOn(store, handle)
}

function transactionOn(store: Store, handle: SqliteHandle): Transaction {
  return {
    synchronous: true,
    send(queue, batch, options) {
      let undone: readonly Sent[] | undefined
      const sent = withinSavepoint(
        handle,
        () => storeBatch(handle, store.clock.now(), queue, batch),
        ({ outcomes }) => {
          undone = options?.atomic === true ? allRefused(outcomes) : undefined
          return undone === undefined
        },
      )
      if (undone !== undefined) return undone
      if (sent.stored > 0) wakeAfterCommit(store)
      return sent.outcomes
    },
    ack(_queue, batch) {
      if (batch.some(({ envelope }) => envelope.orderingKey !== undefined)) wakeAfterCommit(store)
      return withinSavepoint(handle, (): readonly Settled[] =>
        settleBatch(
          handle,
          batch.map((delivery) => ({ as: 'acked', delivery })),
          store.clock.now(),
        ),
      )
    },
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
