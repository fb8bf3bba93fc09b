import { MillraceError } from '../model/errors.ts'

/**
 * A client of pg (from 8.16 on) knows whether it is in a transaction; without one our statements would be committed one
 * by one. Other clients do not say.
 * @throws MILLRACE_FOREIGN_TRANSACTION
 */
export function refuseIdle(tx: object): void {
  if (!('getTransactionStatus' in tx) || typeof tx.getTransactionStatus !== 'function') return
  const status: unknown = tx.getTransactionStatus()
  if (status !== 'I') return
  throw new MillraceError(
    'MILLRACE_FOREIGN_TRANSACTION',
    'the pg client given as tx has no open transaction; begin one first (BEGIN), then send, then commit; nothing was stored',
  )
}
