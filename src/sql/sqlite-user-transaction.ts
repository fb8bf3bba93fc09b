import { MillraceError } from '../model/errors.ts'
import type { SqliteHandle } from './executor.ts'
import { clearError } from './sqlite-fault.ts'
import {
  inTransaction,
  isOpenHandle,
  isSqliteHandle,
  prepared,
  sqliteIdentity,
} from './sqlite-handle.ts'

/**
 * The handle that a user gave as `tx`; undefined when it is none of SQLite's or on another database.
 * @throws MILLRACE_FOREIGN_TRANSACTION when it is closed or has no open transaction
 */
export function userTransaction(
  tx: unknown,
  identity: string | SqliteHandle,
): SqliteHandle | undefined {
  if (!isSqliteHandle(tx)) return undefined
  if (!isOpenHandle(tx)) throw noTransaction('is closed; pass an open one')
  if (sqliteIdentity(tx) !== identity) return undefined
  if (inTransaction(tx)) return tx
  throw noTransaction(
    'has no open transaction; begin one first (BEGIN IMMEDIATE), then send, then commit',
  )
}

function noTransaction(what: string): MillraceError {
  return new MillraceError(
    'MILLRACE_FOREIGN_TRANSACTION',
    `the SQLite handle given as tx ${what}; nothing was stored`,
  )
}

const SAVEPOINT = 'SAVEPOINT millrace_act'
const RELEASE = 'RELEASE millrace_act'
const ROLLBACK_TO = 'ROLLBACK TO millrace_act'

/** An act that fails, or is not to be kept, leaves nothing in a transaction that the user may still commit. */
export function withinSavepoint<T>(
  handle: SqliteHandle,
  act: () => T,
  keep: (value: T) => boolean = () => true,
): T {
  prepared(handle, SAVEPOINT).run()
  try {
    const value = act()
    if (!keep(value)) prepared(handle, ROLLBACK_TO).run()
    prepared(handle, RELEASE).run()
    return value
  } catch (error) {
    // A full disk may have rolled back the whole transaction, and then the savepoint is gone too.
    if (inTransaction(handle)) {
      prepared(handle, ROLLBACK_TO).run()
      prepared(handle, RELEASE).run()
    }
    throw clearError(error)
  }
}
