import { MillraceError } from '../model/errors.ts'
import { read } from '../model/probe.ts'

/**
 * A client of pg (from 8.16 on) knows whether it is in a transaction; without one our statements would be committed one
 * by one. Other clients do not say.
 * @throws MILLRACE_FOREIGN_TRANSACTION
 */
export function refuseIdle(tx: object): void {
  if (!('getTransactionStatus' in tx) || typeof tx.getTransactionStatus !== 'function') return
  const status: unknown = tx.getTransactionStatus()
  const what =
    status === 'I' ? 'has no open transaction' : neverConnected(tx) && 'was never connected'
  if (what === false) return
  throw new MillraceError(
    'MILLRACE_FOREIGN_TRANSACTION',
    `the pg client given as tx ${what}; begin one first (BEGIN), then send, then commit; nothing was stored`,
  )
}

/** Such a client keeps every statement for the moment when it is connected, so that a send would never end. */
function neverConnected(tx: object): boolean {
  return read(tx, '_connected') === false && read(tx, '_connecting') === false
}
