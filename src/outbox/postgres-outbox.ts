import { isObject } from '../model/probe.ts'
import { problems } from '../model/problems.ts'
import type { PgExecutor } from '../sql/executor.ts'
import { pgExecutor } from '../sql/pg-executor.ts'
import { refuseIdle } from '../sql/pg-idle.ts'
import { migratePg, pgDatabaseId, printMigrations } from '../sql/pg-migrate.ts'
import { allInSchema, checkSchemaName } from '../sql/pg-name.ts'
import { addressProblem, type PgAddress, pgPool } from '../sql/pg-open.ts'
import type { PgPool } from '../sql/pg-pool.ts'
import { listeners } from './listeners.ts'
import type { Outbox, OutboxConnector, OutboxContext, OutboxTransaction } from './outbox.ts'
import { addRows } from './postgres-add.ts'
import { postgresRelay } from './postgres-relay.ts'
import { postgresOutboxSchema } from './postgres-schema.ts'
import { type PostgresOutboxStatements, postgresOutboxStatements } from './postgres-statements.ts'
import { postgresStuck } from './postgres-stuck.ts'

export type PostgresOutboxOptions = PgAddress & {
  /** The schema that holds our tables. Default `millrace`. */
  readonly schema?: string
}

/**
 * Messages that are sent inside transactions of your Postgres database, for a transport that is somewhere else.
 *
 * @example
 * const app = await createMillrace({ transport: sqlite({ file }), queues, outbox: postgresOutbox({ pool }) })
 * const client = await pool.connect()
 * await client.query('BEGIN')
 * await app.send(queue, payload, { tx: client })
 * await client.query('COMMIT')
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function postgresOutbox(options: PostgresOutboxOptions): OutboxConnector {
  const found = problems('postgresOutbox')
  found.knownKeys(options, KNOWN)
  const problem = addressProblem(options)
  if (problem !== undefined) found.add(problem)
  found.throwIfAny()
  const { schema = 'millrace' } = options
  checkSchemaName(schema)
  const address: PgAddress =
    options.url === undefined ? { pool: options.pool } : { url: options.url }
  return {
    name: NAME,
    connect: (context) => connect(address, schema, context),
    migrationSql: () => printMigrations(schema, postgresOutboxSchema),
  }
}

const NAME = 'postgres'
const KNOWN: readonly string[] = ['url', 'pool', 'schema']

async function connect(
  address: PgAddress,
  schema: string,
  context: OutboxContext,
): Promise<Outbox> {
  const { clock, random, signal } = context
  const pool = await pgPool(address, { clock })
  try {
    await migratePg(pool, schema, postgresOutboxSchema, context.migrate, { clock, random, signal })
    const reader: PgExecutor = { execute: (sql, params) => pool.query(sql, params, { signal }) }
    const databaseId = await pgDatabaseId(reader, schema)
    if (databaseId === undefined) throw new Error(`schema ${schema} is gone`)
    return outbox(pool, schema, databaseId, context)
  } catch (error) {
    await pool.close()
    throw error
  }
}

/** About as long as it takes until a transaction commits whose last act was to add. */
const COMMIT_SOON_MS = 20

function outbox(pool: PgPool, schema: string, databaseId: string, context: OutboxContext): Outbox {
  const { clock, random } = context
  const statements = allInSchema<PostgresOutboxStatements>(postgresOutboxStatements, schema)
  const { onAdded, tell } = listeners()
  const known = new WeakMap<object, Promise<string | undefined>>()

  /** Asked once for each transaction object; a pooled client stays in its database. */
  const databaseOf = (tx: object, executor: PgExecutor): Promise<string | undefined> => {
    const asked = known.get(tx) ?? pgDatabaseId(executor, schema)
    known.set(tx, asked)
    asked.catch(() => known.delete(tx))
    return asked
  }

  const find = async (tx: object, executor: PgExecutor): Promise<OutboxTransaction | undefined> => {
    refuseIdle(tx)
    if ((await databaseOf(tx, executor)) !== databaseId) return undefined
    return {
      synchronous: false,
      add: async (queue, batch) => {
        const sent = await addRows(executor, statements.ADD, queue, batch)
        clock.after(COMMIT_SOON_MS, tell)
        return sent
      },
    }
  }

  return {
    name: NAME,
    databaseId,
    transaction: (tx) => {
      const executor = pgExecutor(tx)
      return executor && isObject(tx) ? find(tx, executor) : undefined
    },
    relay: postgresRelay({ pool, statements, schema, random }),
    stuck: postgresStuck(pool, statements),
    lag: async () => {
      const [row] = await pool.query(statements.LAG, [])
      return { rows: Number(row?.n ?? 0), ageMs: Math.max(0, Number(row?.age_ms ?? 0)) }
    },
    onAdded,
    close: () => pool.close(),
  }
}
