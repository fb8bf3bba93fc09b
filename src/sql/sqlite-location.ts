import { OptionsError } from '../model/errors.ts'
import type { SqliteHandle } from './executor.ts'
import { isOpenHandle, isSqliteHandle, sqliteIdentity } from './sqlite-handle.ts'
import { type OpenContext, openBeside, openSqlite } from './sqlite-open.ts'

/** Where a database is: a file of ours, or the user's own handle. */
export interface SqliteLocation {
  readonly file?: unknown
  readonly db?: unknown
}

/** What is wrong with a location; empty when nothing is. */
export function locationProblems({ file, db }: SqliteLocation): readonly string[] {
  if ((file === undefined) === (db === undefined)) return ['expected either file or db']
  if (db !== undefined) {
    return isSqliteHandle(db)
      ? []
      : ['expected a DatabaseSync of node:sqlite or a Database of better-sqlite3 for db']
  }
  if (typeof file !== 'string' || file === '') return ['expected a path for file']
  if (file === ':memory:') {
    return ['file ":memory:" would be another database for every connection; pass a handle as db']
  }
  return file.startsWith('file:') ? [`expected a path for file, got the URI "${file}"`] : []
}

/** A connection for our own statements. */
export interface OwnConnection {
  readonly handle: SqliteHandle
  /** It is the user's handle too, because a database in memory has only one; it stays open. */
  readonly shared: boolean
}

/** Our own connection wherever there is a file: the user's handle may be in the middle of a transaction at any time. */
export async function openLocation(
  what: string,
  location: { readonly file: string } | { readonly db: SqliteHandle },
  context: OpenContext,
): Promise<OwnConnection> {
  if ('file' in location) {
    return { handle: await openSqlite(location.file, context), shared: false }
  }
  const { db } = location
  if (!isOpenHandle(db)) {
    throw new OptionsError(what, ['expected an open handle for db, it is closed'])
  }
  const identity = sqliteIdentity(db)
  if (typeof identity !== 'string') return { handle: db, shared: true }
  return { handle: await openBeside(db, identity, context), shared: false }
}
