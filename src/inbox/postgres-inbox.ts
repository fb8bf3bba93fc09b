import { problems } from '../model/problems.ts'
import type { PgExecutor } from '../sql/executor.ts'
import { textArray } from '../sql/pg-array.ts'
import { migratePg, pgDatabaseId, printMigrations } from '../sql/pg-migrate.ts'
import { allInSchema, checkSchemaName } from '../sql/pg-name.ts'
import { addressProblem, type PgAddress, pgPool } from '../sql/pg-open.ts'
import type { PgPool } from '../sql/pg-pool.ts'
import type { PgSource } from '../sql/pg-shapes.ts'
import type { PgTransactionClient, PgTransactionOf } from '../sql/pg-transaction-type.ts'
import type { Inbox, InboxConnector, InboxContext, InboxKey } from './inbox.ts'
import { storedKey } from './key.ts'
import { runOnPostgres } from './postgres-run.ts'
import { postgresInboxSchema } from './postgres-schema.ts'
import { type PostgresInboxStatements, postgresInboxStatements } from './postgres-statements.ts'
import { resolveTtlMs, ttlProblems } from './ttl.ts'

export interface PostgresInboxSettings {
  /** The schema that holds our tables; the transport's, when both are in one database. Default `millrace`. */
  readonly schema?: string
  /** How long a handled key is remembered, in ms. Default: as long as the queues need, at least 7 days. */
  readonly ttlMs?: number
}

export interface PostgresInboxUrl extends PostgresInboxSettings {
  /** `postgres://user:password@host:5432/database`; needs the package pg. The effect gets a client of its pool. */
  readonly url: string
  readonly pool?: never
}

export interface PostgresInboxPool<Pool extends PgSource> extends PostgresInboxSettings {
  /** Your own node-postgres Pool or postgres.js `sql`. The effect gets its PoolClient or TransactionSql. */
  readonly pool: Pool
  readonly url?: never
}

/**
 * Remembers handled keys in your Postgres database, in the transaction of the effect.
 *
 * @example
 * const pool = new Pool()
 * const app = await createMillrace({ transport: postgres({ pool }), queues, inbox: postgresInbox({ pool }) })
 * app.work(queue, async (message, ctx) => {
 *   await ctx.tx(async (client) => { await client.query('UPDATE …') })
 * })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function postgresInbox(options: PostgresInboxUrl): InboxConnector<PgTransactionClient>
export function postgresInbox<Pool extends PgSource>(
  options: PostgresInboxPool<Pool>,
): InboxConnector<PgTransactionOf<Pool>>
export function postgresInbox(
  options: PostgresInboxUrl | PostgresInboxPool<PgSource>,
): InboxConnector<unknown> {
  checkOptions(options)
  const { schema = 'millrace', ttlMs } = options
  const address: PgAddress =
    options.url === undefined ? { pool: options.pool } : { url: options.url }
  return {
    name: NAME,
    connect: (context) => connect(address, { schema, ttlMs }, context),
    migrationSql: () => printMigrations(schema, postgresInboxSchema),
  }
}

const NAME = 'postgres'
const KNOWN: readonly string[] = ['url', 'pool', 'schema', 'ttlMs']

function checkOptions(options: PostgresInboxUrl | PostgresInboxPool<PgSource>): void {
  const found = problems('postgresInbox')
  found.knownKeys(options, KNOWN)
  const problem = addressProblem(options)
  if (problem !== undefined) found.add(problem)
  for (const one of ttlProblems(options.ttlMs)) found.add(one)
  found.throwIfAny()
  checkSchemaName(options.schema ?? 'millrace')
}

interface Resolved {
  readonly schema: string
  readonly ttlMs: number | undefined
}

async function connect(
  address: PgAddress,
  { schema, ttlMs: asked }: Resolved,
  context: InboxContext,
): Promise<Inbox<unknown>> {
  const ttlMs = resolveTtlMs('postgresInbox', asked, context.neededTtlMs)
  const pool = await pgPool(address, { clock: context.clock })
  try {
    const { clock, random, signal } = context
    await migratePg(pool, schema, postgresInboxSchema, context.migrate, { clock, random, signal })
    const statements = allInSchema<PostgresInboxStatements>(postgresInboxStatements, schema)
    const reader: PgExecutor = { execute: (sql, params) => pool.query(sql, params, { signal }) }
    const databaseId = await pgDatabaseId(reader, schema)
    if (databaseId === undefined) throw new Error(`schema ${schema} is gone`)
    const [row] = await reader.execute(statements.VERSION, [])
    const version = Number(row?.version)
    return inbox({ pool, statements, ttlMs, version, context, databaseId })
  } catch (error) {
    await pool.close()
    throw error
  }
}

interface Opened {
  readonly pool: PgPool
  readonly statements: PostgresInboxStatements
  readonly ttlMs: number
  readonly version: number
  readonly context: InboxContext
  readonly databaseId: string
}

function inbox({ pool, statements, ttlMs, version, context, databaseId }: Opened): Inbox<unknown> {
  const { clock, random } = context
  return {
    name: NAME,
    databaseId,
    ttlMs,
    effects: 'async',
    seen: async (keys) => {
      if (keys.length === 0) return []
      const rows = await pool.query(statements.SEEN, columns(keys))
      const places = new Set(rows.map(({ place }) => Number(place)))
      return keys.map((_, at) => places.has(at + 1))
    },
    run: (key, work) =>
      runOnPostgres({ pool, statements, ttlMs, version, clock, random }, key, work),
    record: async (keys) => {
      if (keys.length > 0) await pool.query(statements.RECORD, [...columns(keys), ttlMs])
    },
    prune: async (max) => {
      const [row] = await pool.query(statements.PRUNE, [max])
      return Number(row?.pruned ?? 0)
    },
    close: () => pool.close(),
  }
}

function columns(keys: readonly InboxKey[]): readonly [string, string] {
  return [
    textArray(keys.map(({ queue }) => queue)),
    textArray(keys.map(({ key }) => storedKey(key))),
  ]
}
