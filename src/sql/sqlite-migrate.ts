import type { Clock } from '../model/clock.ts'
import { MillraceError } from '../model/errors.ts'
import type { SqliteHandle } from './executor.ts'
import { asNumber, asRow, sqliteIdentity } from './sqlite-handle.ts'
import { openingBusyMs, whenFree, withWriteTransaction } from './sqlite-write.ts'

/** One component's schema: the migration at index n leads to version n + 1. Append only. */
export interface SqliteSchema {
  /** Names the version row: `queue`, `inbox`, `outbox`. */
  readonly component: string
  /** Each may hold several statements. */
  readonly migrations: readonly string[]
}

export interface MigrateContext {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** `auto` brings the schema up to date; `check` refuses an outdated one. Both refuse a newer one. */
  readonly migrate: 'auto' | 'check'
  /** Where the store's id comes from; default: SQLite's own random generator. */
  readonly random?: () => number
  /** How long to wait for another writer, in ms. Default and most 20,000. */
  readonly busyTimeoutMs?: number
}

const CREATE_META =
  'CREATE TABLE IF NOT EXISTS millrace_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID'
const HAS_META =
  "SELECT count(*) AS n FROM sqlite_schema WHERE type = 'table' AND name = 'millrace_meta'"
const READ_META = 'SELECT value FROM millrace_meta WHERE key = ?'
const WRITE_META =
  'INSERT INTO millrace_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value'
const ADD_STORE_ID =
  "INSERT INTO millrace_meta (key, value) VALUES ('store_id', ifnull(?, lower(hex(randomblob(16))))) ON CONFLICT (key) DO NOTHING"

/**
 * Brings the tables of one component up to date, forward only. Everything happens under one write lock, so any number
 * of processes may start at once; a schema that is up to date is only read.
 * @throws MILLRACE_SCHEMA_TOO_NEW, MILLRACE_SCHEMA_OUTDATED (with `migrate: 'check'`), MILLRACE_UNAVAILABLE when another writer stays
 */
export async function migrateSqlite(
  handle: SqliteHandle,
  schema: SqliteSchema,
  context: MigrateContext,
): Promise<void> {
  const { clock, signal } = context
  const newest = schema.migrations.length
  const wait = { busyTimeoutMs: openingBusyMs(context) }
  const look = (): number => versionOf(handle, schema.component)
  const found = await whenFree(handle, clock, signal, look, wait)
  refuseNewer(schema, found)
  if (found === newest) return
  if (context.migrate === 'check') throw outdated(schema, found)
  const up = (): void => bringUp(handle, schema, context.random)
  await withWriteTransaction(handle, clock, signal, up, wait)
}

function bringUp(handle: SqliteHandle, schema: SqliteSchema, random?: () => number): void {
  handle.exec(CREATE_META)
  handle.prepare(ADD_STORE_ID).run(random ? hex(random) : null)
  const from = versionOf(handle, schema.component)
  refuseNewer(schema, from)
  try {
    for (const migration of schema.migrations.slice(from)) handle.exec(migration)
  } catch (error) {
    throw nameTaken(error) ?? error
  }
  handle.prepare(WRITE_META).run(versionKey(schema.component), String(schema.migrations.length))
}

/** SQLite tells it in its text alone; the code is that of every wrong statement. */
const TAKEN = /(?:table|index|view|trigger) (?:named )?"?([^\s"]+)"?(?: already exists)?$/

/** Of a file where somebody else has a table with a name of ours. */
function nameTaken(cause: unknown): MillraceError | undefined {
  const text = cause instanceof Error ? cause.message : ''
  const name = /already/.test(text) ? TAKEN.exec(text)?.[1] : undefined
  if (name === undefined) return undefined
  return new MillraceError(
    'MILLRACE_INVALID_OPTIONS',
    `the SQLite database has a "${name}" already that is none of ours; nothing was made, use another file, or rename what is there`,
    { cause, fields: { name } },
  )
}

function versionOf(handle: SqliteHandle, component: string): number {
  const meta = asRow(handle.prepare(HAS_META).get())
  if (asNumber(meta.n) === 0) return 0
  return asNumber(asRow(handle.prepare(READ_META).get(versionKey(component))).value)
}

function versionKey(component: string): string {
  return `schema:${component}`
}

function refuseNewer({ component, migrations }: SqliteSchema, found: number): void {
  if (found <= migrations.length) return
  throw new MillraceError(
    'MILLRACE_SCHEMA_TOO_NEW',
    `the ${component} schema has version ${found}, this millrace knows up to ${migrations.length}; update the package`,
    { fields: { component, found, newest: migrations.length } },
  )
}

function outdated({ component, migrations }: SqliteSchema, found: number): MillraceError {
  return new MillraceError(
    'MILLRACE_SCHEMA_OUTDATED',
    `the ${component} schema has version ${found}, this millrace needs ${migrations.length}; run \`millrace migrate\``,
    { fields: { component, found, newest: migrations.length } },
  )
}

function hex(random: () => number): string {
  let text = ''
  while (text.length < 32) text += Math.floor(random() * 16).toString(16)
  return text
}

/**
 * Same value, same database: what `Transport.databaseId` and `Inbox.databaseId` say. The path is part of it, because a
 * copied file carries its origin's id. Needs a migrated database.
 */
export function sqliteDatabaseId(handle: SqliteHandle): string {
  const storeId = String(asRow(handle.prepare(READ_META).get('store_id')).value)
  const identity = sqliteIdentity(handle)
  return typeof identity === 'string' ? `sqlite:${storeId}@${identity}` : `sqlite:${storeId}`
}

/** The same steps as SQL to read and apply by hand, to a database that has none of them. */
export function printSqliteMigrations({ component, migrations }: SqliteSchema): string {
  const steps = migrations.flatMap((sql, i) => [`-- ${component}, version ${i + 1}`, sql.trim()])
  return `${[
    'BEGIN IMMEDIATE;',
    `${CREATE_META};`,
    `${ADD_STORE_ID.replace('?', 'NULL')};`,
    ...steps,
    `${WRITE_META.replace('?, ?', `'${versionKey(component)}', '${migrations.length}'`)};`,
    'COMMIT;',
  ].join('\n')}\n`
}
