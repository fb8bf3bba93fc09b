import { realpathSync } from 'node:fs'
import { MillraceError } from '../model/errors.ts'
import type { Row, SqliteHandle, SqliteStatement } from './executor.ts'

/** Which library made the handle. They differ in the name of one property and in how they report errors. */
export type SqliteClient = 'node:sqlite' | 'better-sqlite3'

/** The client behind a value, by shape; undefined when it is no SQLite handle. */
export function sqliteClient(value: unknown): SqliteClient | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (!isFunction(value, 'exec') || !isFunction(value, 'prepare')) return undefined
  if (!isFunction(value, 'close')) return undefined
  if ('isTransaction' in value) return 'node:sqlite'
  if ('inTransaction' in value && isFunction(value, 'pragma')) return 'better-sqlite3'
  return undefined
}

export function isSqliteHandle(value: unknown): value is SqliteHandle {
  return sqliteClient(value) !== undefined
}

function isFunction(value: object, name: string): boolean {
  return typeof Reflect.get(value, name) === 'function'
}

/** False for a closed handle: reading either property must not throw. */
export function isOpenHandle(handle: SqliteHandle): boolean {
  return Reflect.get(handle, sqliteClient(handle) === 'node:sqlite' ? 'isOpen' : 'open') === true
}

/** Whether a transaction is open on this handle, whoever began it. */
export function inTransaction(handle: SqliteHandle): boolean {
  if (!isOpenHandle(handle)) return false
  return Boolean(Reflect.get(handle, 'isTransaction') ?? Reflect.get(handle, 'inTransaction'))
}

const DATABASE_LIST = 'PRAGMA database_list'
const identities = new WeakMap<SqliteHandle, string | SqliteHandle>()

/**
 * What tells two databases apart: the real path of the main file, or the handle itself for one in memory. Handles of
 * one file have the same identity.
 * @throws MILLRACE_FOREIGN_TRANSACTION when another SQLite library of this process has the file open: two copies of
 * SQLite drop each other's file locks (sqlite.org/howtocorrupt.html, 2.2.1).
 */
export function sqliteIdentity(handle: SqliteHandle): string | SqliteHandle {
  const known = identities.get(handle)
  if (known !== undefined) return known
  const main = prepared(handle, DATABASE_LIST)
    .all()
    .map(asRow)
    .find((row) => row.name === 'main')
  const file = typeof main?.file === 'string' ? main.file : ''
  const identity = file === '' ? handle : realpathSync(file)
  if (typeof identity === 'string') refuseSecondLibrary(identity, handle)
  identities.set(handle, identity)
  return identity
}

interface Opened {
  readonly client: SqliteClient
  readonly handle: WeakRef<SqliteHandle>
}

const opened = new Map<string, Opened[]>()

function refuseSecondLibrary(file: string, handle: SqliteHandle): void {
  const client = sqliteClient(handle) ?? 'node:sqlite'
  const live = (opened.get(file) ?? []).filter((entry) => {
    const other = entry.handle.deref()
    return other !== undefined && isOpenHandle(other)
  })
  const other = live.find((entry) => entry.client !== client)
  if (other) {
    throw new MillraceError(
      'MILLRACE_FOREIGN_TRANSACTION',
      `${file} is already open through ${other.client} in this process and now through ${client}: two SQLite libraries ` +
        "drop each other's file locks and can corrupt the file; use one client for both (sqlite({ db }) takes your handle)",
      { fields: { file, clients: [other.client, client] } },
    )
  }
  opened.set(file, [...live, { client, handle: new WeakRef(handle) }])
}

const caches = new WeakMap<SqliteHandle, Map<string, SqliteStatement>>()

/**
 * The statement for this SQL, prepared once per handle. Rows are objects and integers are numbers, whatever the
 * handle's own defaults are.
 */
export function prepared(handle: SqliteHandle, sql: string): SqliteStatement {
  let cache = caches.get(handle)
  if (!cache) {
    cache = new Map()
    caches.set(handle, cache)
  }
  let statement = cache.get(sql)
  if (!statement) {
    statement = plainRows(handle.prepare(sql))
    cache.set(sql, statement)
  }
  return statement
}

function plainRows(statement: SqliteStatement): SqliteStatement {
  for (const setting of ['setReadBigInts', 'setReturnArrays', 'safeIntegers']) {
    const set: unknown = Reflect.get(statement, setting)
    if (typeof set === 'function') set.call(statement, false)
  }
  return statement
}

/** A row as a record; an empty one when the client gave something else. */
export function asRow(value: unknown): Row {
  return isRow(value) ? value : {}
}

function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null
}

/** A column as a number: bigint and null never surprise. */
export function asNumber(value: unknown): number {
  return typeof value === 'number' ? value : Number(value ?? 0)
}
