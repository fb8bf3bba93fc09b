import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { MillraceError, OptionsError } from '../model/errors.ts'
import { type Problems, show } from '../model/problems.ts'
import { eitherProblem } from './either.ts'
import type { SqliteHandle } from './executor.ts'
import { isReadOnly } from './sqlite-fault.ts'
import { type FileProblems, watchFile } from './sqlite-file.ts'
import {
  asNumber,
  asRow,
  inTransaction,
  isOpenHandle,
  isSqliteHandle,
  sqliteIdentity,
} from './sqlite-handle.ts'
import { type OpenContext, openBeside, openSqlite } from './sqlite-open.ts'
import { waitProblems } from './sqlite-waits.ts'

/** Where a database is: a file of ours, or the user's own handle. */
export interface SqliteLocation {
  readonly file?: unknown
  readonly db?: unknown
}

/** What is wrong with a location; empty when nothing is. Takes the options as they were given. */
export function locationProblems(given: SqliteLocation): readonly string[] {
  const { file, db } = given
  const choice = eitherProblem(given, 'file', 'db')
  if (choice !== undefined) return [choice]
  if (db !== undefined) {
    return isSqliteHandle(db)
      ? []
      : [
          `db: expected a DatabaseSync of node:sqlite or a Database of better-sqlite3, got ${show(db)}`,
        ]
  }
  if (typeof file !== 'string' || file === '') {
    return [`file: expected a path, got ${show(file)}`]
  }
  if (file === ':memory:') {
    return ['file: ":memory:" would be another database for every connection; pass a handle as db']
  }
  return file.startsWith('file:') ? [`file: expected a path, got the URI ${show(file)}`] : []
}

export function checkSynchronous(synchronous: unknown, found: Problems): void {
  if (synchronous === 'full' || synchronous === 'normal') return
  found.add(`synchronous: expected 'full' or 'normal', got ${show(synchronous)}`)
}

/** Whoever only looks must not leave an empty database behind, perhaps for a mistyped name. */
export function refuseMissing(what: string, location: Place): void {
  if (!('file' in location) || existsSync(location.file)) return
  throw new MillraceError(
    'MILLRACE_SCHEMA_OUTDATED',
    `${what}: file "${location.file}" does not exist; check the name, or make it: run millrace migrate, or start with migrate: 'auto'`,
  )
}

/** A location that was checked. */
type Place = { readonly file: string } | { readonly db: SqliteHandle }

/** A connection for our own statements. */
export interface OwnConnection {
  readonly handle: SqliteHandle
  /** It is the user's handle too, because a database in memory has only one; it stays open. */
  readonly shared: boolean
  /** What is wrong with the file now, and whether calls have waited for its lock for long. */
  readonly problems: FileProblems
}

/** Our own connection wherever there is a file: the user's handle may be in the middle of a transaction at any time. */
export async function openLocation(
  what: string,
  location: Place,
  context: OpenContext,
): Promise<OwnConnection> {
  if ('file' in location) {
    const path = resolve(location.file)
    const handle = await openSqlite(location.file, context)
    return { handle, shared: false, problems: problemsOf(path, context, { ours: handle }) }
  }
  const { db } = location
  if (!isOpenHandle(db)) {
    throw new OptionsError(what, ['expected an open handle for db, it is closed'])
  }
  const identity = sqliteIdentity(db)
  const both = { ours: db, theirs: db }
  if (typeof identity !== 'string') {
    return { handle: db, shared: true, problems: problemsOf(undefined, context, both) }
  }
  const handle = await openBeside(db, identity, context)
  const problems = problemsOf(identity, context, { ...both, ours: handle })
  return { handle, shared: false, problems }
}

/** Nothing is deleted; but what may only read is told so. */
const TRY_WRITING = 'DELETE FROM millrace_meta WHERE 0'

/**
 * A handle that may only read is found at start, and not at the first send in its transaction. Needs a migrated database.
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function refuseReadOnlyHandle(what: string, location: Place): void {
  // In a transaction of the user's a try would take the write lock for as long as that is open.
  if (!('db' in location) || inTransaction(location.db)) return
  if (!mayOnlyRead(location.db)) return
  throw new OptionsError(what, [
    'expected a handle for db that may write, it may only read; open it without readOnly (readonly, query_only), or give file',
  ])
}

/** Nobody is waited for: somebody else who writes at this moment is no reason to refuse. */
function mayOnlyRead(db: SqliteHandle): boolean {
  const before = asNumber(Object.values(asRow(db.prepare('PRAGMA busy_timeout').get()))[0])
  db.prepare('PRAGMA busy_timeout = 0').all()
  try {
    db.prepare(TRY_WRITING).run()
    return false
  } catch (error) {
    return isReadOnly(error)
  } finally {
    db.prepare(`PRAGMA busy_timeout = ${before}`).all()
  }
}

/** `path` is undefined for a database in memory. */
function problemsOf(
  path: string | undefined,
  { clock }: OpenContext,
  handles: { readonly ours: SqliteHandle; readonly theirs?: SqliteHandle },
): FileProblems {
  const ofFile = path === undefined ? () => [] : watchFile(path)
  const where = path === undefined ? 'the SQLite database in memory' : `SQLite database ${path}`
  return () => [...ofFile(), ...waitProblems(where, clock.now(), handles)]
}
