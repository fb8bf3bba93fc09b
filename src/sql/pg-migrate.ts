import { type Clock, pause } from '../model/clock.ts'
import { MillraceError } from '../model/errors.ts'
import { read } from '../model/probe.ts'
import type { PgExecutor, Row } from './executor.ts'
import { inSchema } from './pg-name.ts'
import type { PgCallOptions, PgPool } from './pg-pool.ts'

/** One step forward. Never changed once released; `{schema}` stands for the quoted schema. */
export interface PgMigration {
  readonly statements: readonly string[]
  /**
   * The oldest version whose code still works on a database that this step has changed. Default: only this version,
   * so that older code refuses to start.
   */
  readonly compatibleFrom?: number
}

export interface PgSchema {
  /** `queue`, `inbox`, `outbox`: each goes its own way within one schema. */
  readonly component: string
  /** In order; the version is how many were applied. */
  readonly migrations: readonly PgMigration[]
}

/** What every component shares: an identity that travels with the data, and the version of each component. */
const FOUNDATION: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS {schema}.meta (
  key text PRIMARY KEY,
  value text NOT NULL
)`,
  `CREATE TABLE IF NOT EXISTS {schema}.migration (
  component text PRIMARY KEY,
  version integer NOT NULL,
  compatible_from integer NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
)`,
  `INSERT INTO {schema}.meta (key, value) VALUES ('store_id', gen_random_uuid()::text)
ON CONFLICT (key) DO NOTHING`,
]

/** Asked apart from creating: CREATE SCHEMA IF NOT EXISTS needs the right to create even where it exists. */
const HAS_SCHEMA = 'SELECT 1 AS found FROM pg_catalog.pg_namespace WHERE nspname = $1'
const CREATE_SCHEMA = 'CREATE SCHEMA IF NOT EXISTS {schema}'
/** By the catalogue: naming a table that is missing or not ours to read would end the user's transaction. */
const HAS_TABLE = `
SELECT 1 AS found FROM pg_catalog.pg_class AS t JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
WHERE n.nspname = $1 AND t.relname = $2
  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(t.oid, 'SELECT')`
const READ_VERSION = 'SELECT version, compatible_from FROM {schema}.migration WHERE component = $1'
const WRITE_VERSION = `
INSERT INTO {schema}.migration (component, version, compatible_from) VALUES ($1, $2::integer, $3::integer)
ON CONFLICT (component) DO UPDATE SET
  version = excluded.version, compatible_from = excluded.compatible_from, applied_at = now()`
/** 'millrace' in ASCII, as a number. Of the transaction, so that it works through a pooler and ends with a crash. */
const LOCK = 'SELECT pg_advisory_xact_lock(7883951835720016741)'
/** Other instances that migrate: they have no table locked while they wait here. */
const LIMIT_WAIT = "SET LOCAL lock_timeout = '60s'"
/**
 * Behind a change that waits for a table everybody else waits, too, so it gives way soon and comes again: a transaction of somebody
 * else that sent and stays open would stop the whole queue. Below `deadlock_timeout` (1 s by default): of a change and a worker that
 * wait for each other it is the change that ends, not the worker.
 */
const LIMIT_LOCKS = "SET LOCAL lock_timeout = '500ms'"
const STORE_ID = `
SELECT value AS store_id, (SELECT oid::text FROM pg_catalog.pg_database WHERE datname = current_database()) AS database
FROM {schema}.meta WHERE key = 'store_id'`

/** A migration may wait for others and change large tables. */
const MIGRATE_TIMEOUT_MS = 600_000

/** How long somebody else's transaction may keep a migration from the tables. */
const PATIENCE_MS = 60_000
/**
 * Between two tries, for which the others go on; it doubles, as a change that waits holds them up. Drawn up to twice as long, so that
 * those who met do not meet again.
 */
const GIVE_WAY_MS = 250
const GIVE_WAY_MAX_MS = 2_000

export interface MigrateOptions {
  readonly clock: Clock
  readonly random: () => number
  /** Of the look at what is there. A migration that has begun goes on. */
  readonly signal?: AbortSignal
}

/**
 * Brings one component of a schema up to date, forward only, in one transaction under one lock, so that any number of
 * instances may start at once, beside workers of the version before; what is up to date is only read.
 * @throws MILLRACE_SCHEMA_TOO_NEW, MILLRACE_SCHEMA_OUTDATED (with `check`), MILLRACE_UNAVAILABLE when another transaction keeps the
 *   tables for a minute
 */
export async function migratePg(
  pool: PgPool,
  schema: string,
  { component, migrations }: PgSchema,
  mode: 'auto' | 'check',
  { clock, random, signal }: MigrateOptions,
): Promise<void> {
  const call: PgCallOptions = signal === undefined ? {} : { signal }
  const newest = migrations.length
  const reader: PgExecutor = { execute: (sql, params) => pool.query(sql, params, call) }
  const found = await versionOf(reader, schema, component)
  refuseNewer(component, found, newest)
  if (found.version >= newest) return
  if (mode === 'check') throw outdated(component, found.version, newest)
  const giveUpAt = clock.now() + PATIENCE_MS
  for (let giveWayMs = GIVE_WAY_MS; ; giveWayMs = Math.min(GIVE_WAY_MAX_MS, 2 * giveWayMs)) {
    try {
      await pool.begin((executor) => bringUp(executor, schema, { component, migrations }), {
        timeoutMs: MIGRATE_TIMEOUT_MS,
      })
      return
    } catch (error) {
      if (!isInTheWay(error)) throw error
      if (clock.now() >= giveUpAt) throw keptOut(schema, component, error)
      await pause(clock, giveWayMs * (1 + random()))
    }
  }
}

/** Lock timeout and deadlock: the transaction was rolled back as a whole. */
const IN_THE_WAY: readonly unknown[] = ['55P03', '40P01']

function isInTheWay(error: unknown): boolean {
  return IN_THE_WAY.includes(read(error, 'code'))
}

function keptOut(schema: string, component: string, cause: unknown): MillraceError {
  return new MillraceError(
    'MILLRACE_UNAVAILABLE',
    `the ${component} schema "${schema}" could not be brought up to date within ${PATIENCE_MS / 1_000} s, because another transaction holds its tables; nothing was changed: end that transaction (pg_stat_activity shows it), and start again`,
    { cause, retryable: true, fields: { schema, component } },
  )
}

async function bringUp(
  executor: PgExecutor,
  schema: string,
  { component, migrations }: PgSchema,
): Promise<void> {
  const run = (sql: string, params: readonly unknown[] = []): Promise<readonly Row[]> =>
    executor.execute(inSchema(sql, schema), params)
  await run(LIMIT_WAIT)
  await run(LOCK)
  await run(LIMIT_LOCKS)
  if ((await run(HAS_SCHEMA, [schema])).length === 0) await run(CREATE_SCHEMA)
  const before = await versionOf(executor, schema, component)
  refuseNewer(component, before, migrations.length)
  if (before.version >= migrations.length) return
  for (const statement of FOUNDATION) await run(statement)
  for (const { statements } of migrations.slice(before.version)) {
    for (const statement of statements) await run(statement)
  }
  await run(WRITE_VERSION, versionRow(component, migrations))
}

function versionRow(
  component: string,
  migrations: readonly PgMigration[],
): readonly [string, number, number] {
  const version = migrations.length
  return [component, version, migrations.at(-1)?.compatibleFrom ?? version]
}

interface Version {
  readonly version: number
  readonly compatibleFrom: number
}

async function versionOf(
  executor: PgExecutor,
  schema: string,
  component: string,
): Promise<Version> {
  const exists = await executor.execute(HAS_TABLE, [schema, 'migration'])
  if (exists.length === 0) return { version: 0, compatibleFrom: 0 }
  const [row] = await executor.execute(inSchema(READ_VERSION, schema), [component])
  return { version: Number(row?.version ?? 0), compatibleFrom: Number(row?.compatible_from ?? 0) }
}

function refuseNewer(component: string, found: Version, newest: number): void {
  if (found.version <= newest || found.compatibleFrom <= newest) return
  throw new MillraceError(
    'MILLRACE_SCHEMA_TOO_NEW',
    `the ${component} schema has version ${found.version}, this millrace knows up to ${newest}; update the package`,
    { fields: { component, found: found.version, newest } },
  )
}

function outdated(component: string, found: number, newest: number): MillraceError {
  return new MillraceError(
    'MILLRACE_SCHEMA_OUTDATED',
    `the ${component} schema has version ${found}, this millrace needs ${newest}; run \`millrace migrate\``,
    { fields: { component, found, newest } },
  )
}

/**
 * The same steps as SQL to read and apply by hand.
 * @param from the version that the database has; 0, the default, when it has none
 */
export function printMigrations(
  schema: string,
  { component, migrations }: PgSchema,
  from = 0,
): string {
  const [name, version, compatibleFrom] = versionRow(component, migrations)
  const steps = migrations
    .slice(from)
    .flatMap(({ statements }, at) => [
      `-- ${component}, version ${from + at + 1}`,
      ...statements.map(terminated),
    ])
  const lines = [
    `-- Where {schema}.migration says that ${name} has a version already, leave out the steps up to that one.`,
    'BEGIN;',
    terminated(LOCK),
    '-- Waits no longer for others than they would notice; when it ends with a lock timeout, nothing is changed: run it again.',
    terminated(LIMIT_LOCKS),
    terminated(CREATE_SCHEMA),
    ...FOUNDATION.map(terminated),
    ...steps,
    `INSERT INTO {schema}.migration (component, version, compatible_from) VALUES ('${name}', ${version}, ${compatibleFrom})`,
    'ON CONFLICT (component) DO UPDATE SET',
    '  version = excluded.version, compatible_from = excluded.compatible_from, applied_at = now();',
    'COMMIT;',
  ]
  return `${inSchema(lines.join('\n'), schema)}\n`
}

function terminated(sql: string): string {
  return `${sql.trim()};`
}

/**
 * Same value, same database: what `Transport.databaseId` and `Inbox.databaseId` say. The database's own number is part
 * of it, because a copied database carries its origin's id. Undefined when the schema has not been made.
 */
export async function pgDatabaseId(
  executor: PgExecutor,
  schema: string,
): Promise<string | undefined> {
  const exists = await executor.execute(HAS_TABLE, [schema, 'meta'])
  if (exists.length === 0) return undefined
  const [row] = await executor.execute(inSchema(STORE_ID, schema), [])
  return row === undefined ? undefined : `postgres:${String(row.store_id)}@${String(row.database)}`
}

/**
 * False when one transaction cannot reach both. Two schemas of one Postgres database have an id each, and a transaction reaches both; two servers
 * may give a database the same number.
 */
export function mayBeOneDatabase(a: string, b: string): boolean {
  if (a === b) return true
  const [one, other] = [a, b].map((id) => /^postgres:.*@(\d+)$/.exec(id)?.[1])
  return one !== undefined && one === other
}
