import { MillraceError } from '../model/errors.ts'
import type { Fault } from '../model/fault.ts'

/** Primary result codes (sqlite.org/rescode.html) that we tell apart. */
const BUSY = 5
const LOCKED = 6
const READONLY = 8
const IOERR = 10
const FULL = 13
const CANTOPEN = 14
const PROTOCOL = 15
const AUTH = 23
const PERM = 3
const CORRUPT = 11
const NOTADB = 26
const TOOBIG = 18
/** The -shm file could not grow: with a full disk this comes before SQLITE_FULL. */
const IOERR_SHMSIZE = 4874

const byName: Readonly<Record<string, number>> = {
  SQLITE_PERM: PERM,
  SQLITE_BUSY: BUSY,
  SQLITE_LOCKED: LOCKED,
  SQLITE_READONLY: READONLY,
  SQLITE_IOERR: IOERR,
  SQLITE_CORRUPT: CORRUPT,
  SQLITE_FULL: FULL,
  SQLITE_CANTOPEN: CANTOPEN,
  SQLITE_PROTOCOL: PROTOCOL,
  SQLITE_TOOBIG: TOOBIG,
  SQLITE_AUTH: AUTH,
  SQLITE_NOTADB: NOTADB,
}

/** The primary result code of an error that SQLite threw; undefined for any other error. */
function sqliteCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if ('errcode' in error && typeof error.errcode === 'number') {
    return error.errcode === IOERR_SHMSIZE ? FULL : error.errcode & 0xff
  }
  if (!('code' in error) || typeof error.code !== 'string') return undefined
  if (error.code === 'SQLITE_IOERR_SHMSIZE') return FULL
  const primary = /^SQLITE_[A-Z]+/.exec(error.code)?.[0]
  return primary === undefined ? undefined : byName[primary]
}

/** Somebody else holds the lock; the same call succeeds once they let go. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error)
  return code === BUSY || code === LOCKED || code === PROTOCOL
}

/** This connection, or this account, may only read. */
export function isReadOnly(error: unknown): boolean {
  return sqliteCode(error) === READONLY
}

/** The file is something else, or encrypted. */
export function isNoDatabase(error: unknown): boolean {
  return sqliteCode(error) === NOTADB
}

/** A raw error as a user should see it: what he can mend gets its own code, everything else stays as it is. */
export function clearError(error: unknown): unknown {
  switch (sqliteCode(error)) {
    case FULL:
      return new MillraceError(
        'MILLRACE_DISK_FULL',
        'SQLite could not write: the disk (or the limit set for this database) is full; nothing was stored, free some space and try again',
        { cause: error, retryable: true },
      )
    case READONLY:
      return new MillraceError(
        'MILLRACE_DENIED',
        'SQLite may not write: the file, its -wal and -shm, or their folder are read-only for this account; nothing was stored, ' +
          'give it the right to write',
        { cause: error },
      )
    default:
      return error
  }
}

/** Names the fault behind an error of SQLite or of these tools. */
export function sqliteFault(error: unknown): Fault {
  if (error instanceof MillraceError) {
    const code = error.retryable ? 'unavailable' : 'denied'
    return {
      code,
      retryable: error.retryable,
      outcome: 'notApplied',
      cause: error,
    }
  }
  switch (sqliteCode(error)) {
    case BUSY:
    case LOCKED:
    case PROTOCOL:
    case CANTOPEN:
      return {
        code: 'unavailable',
        retryable: true,
        outcome: 'notApplied',
        cause: error,
      }
    case FULL:
      return {
        code: 'unavailable',
        retryable: true,
        outcome: 'notApplied',
        cause: clearError(error),
      }
    case READONLY:
    case PERM:
    case AUTH:
      return {
        code: 'denied',
        retryable: false,
        outcome: 'notApplied',
        cause: error,
      }
    case TOOBIG:
      return {
        code: 'tooLarge',
        retryable: false,
        outcome: 'notApplied',
        cause: error,
      }
    case IOERR:
      return {
        code: 'unavailable',
        retryable: true,
        outcome: 'unknown',
        cause: error,
      }
    case CORRUPT:
    case NOTADB:
      return {
        code: 'unknown',
        retryable: false,
        outcome: 'unknown',
        cause: error,
      }
    default:
      return {
        code: 'unknown',
        retryable: false,
        outcome: 'notApplied',
        cause: error,
      }
  }
}
