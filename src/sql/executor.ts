import type { MaybePromise } from '../model/maybe-promise.ts'

/** One row as the client gives it. */
export type Row = Readonly<Record<string, unknown>>

/** Runs one Postgres statement with `$1` parameters, within whatever transaction it was made from. */
export interface PgExecutor {
  readonly execute: (sql: string, params: readonly unknown[]) => Promise<readonly Row[]>
}

/**
 * The adapter for any client that is not known by shape (an ORM's transaction, a wrapper): pass
 * `tx: { execute: (sql, params) => rows }` and Millrace runs its statements through it.
 */
export interface TransactionAdapter {
  execute(sql: string, params: readonly unknown[]): MaybePromise<readonly Row[]>
}

/** The part of a SQLite handle that we use; node:sqlite's DatabaseSync and better-sqlite3's Database both have it. */
export interface SqliteHandle {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
  close(): unknown
}

export interface SqliteStatement {
  run(...params: readonly unknown[]): { readonly changes: number | bigint }
  get(...params: readonly unknown[]): unknown
  all(...params: readonly unknown[]): readonly unknown[]
  /** Row by row; whoever stops reads no further. */
  iterate(...params: readonly unknown[]): Iterable<unknown>
}
