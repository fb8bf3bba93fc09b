import { MillraceError } from '../model/errors.ts'
import { readString } from '../model/probe.ts'
import type { PgExecutor } from './executor.ts'

/** SQLSTATE in_failed_sql_transaction. */
const ABORTED = '25P02'

/** A statement before this one failed, and Postgres takes no more of the transaction. */
export function isAborted(error: unknown): boolean {
  return readString(error, 'code') === ABORTED
}

/** In a transaction of the user's: says what has happened to it, which the error of the server leaves open. */
export function namingAborted({ execute }: PgExecutor): PgExecutor {
  return {
    execute: async (sql, params) => {
      try {
        return await execute(sql, params)
      } catch (error) {
        throw isAborted(error) ? abortedError(error) : error
      }
    },
  }
}

function abortedError(cause: unknown): MillraceError {
  return new MillraceError(
    'MILLRACE_BACKEND_FAULT',
    'the transaction given as tx was aborted by the error of an earlier statement in it, so Postgres takes no more of it (25P02); ' +
      'nothing was stored: roll it back and run it again, or put what may fail between SAVEPOINT and ROLLBACK TO',
    { cause, retryable: true },
  )
}
