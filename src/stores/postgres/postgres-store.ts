import { problems } from '../../model/problems.ts'
import { pgFault } from '../../sql/pg-fault.ts'
import { migratePg, printMigrations } from '../../sql/pg-migrate.ts'
import { checkSchemaName } from '../../sql/pg-name.ts'
import { addressProblem, type PgAddress, pgPool } from '../../sql/pg-open.ts'
import type { PgPool } from '../../sql/pg-pool.ts'
import type { Store, StoreConnector } from '../../store/store.ts'
import type { ConnectContext } from '../../transport/transport.ts'
import { guardedStore, type StoreParts } from '../guarded-store.ts'
import { type Database, statementsIn } from './database.ts'
import { postgresDelayed } from './delayed.ts'
import { postgresJournal } from './journal.ts'
import { postgresKeys } from './keys.ts'
import { postgresLeases } from './leases.ts'
import { postgresBuckets, postgresCounters } from './numbers.ts'
import { storeSchema } from './schema.ts'
import { postgresShelf } from './shelf.ts'
import { postgresSlots } from './slots.ts'
import { postgresStates } from './states.ts'

export type PostgresStoreOptions = PostgresStoreSettings & PgAddress

export interface PostgresStoreSettings {
  /** The schema that holds our tables, made when missing; may be that of inbox, outbox and transport. Default `millrace`. */
  readonly schema?: string
}

/**
 * A store in a Postgres database, version 13 or newer, for any number of processes; PgBouncer may stand before it.
 *
 * @example
 * const app = await createMillrace({ transport, store: postgresStore({ url: 'postgres://localhost/shop' }), queues })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function postgresStore(options: PostgresStoreOptions): StoreConnector {
  checkOptions(options)
  const { schema = 'millrace' } = options
  const address: PgAddress =
    options.url === undefined ? { pool: options.pool } : { url: options.url }
  return {
    name: NAME,
    connect: (context) => connect(address, schema, context),
    migrationSql: () => printMigrations(schema, storeSchema),
  }
}

const NAME = 'postgres'
const KNOWN: readonly string[] = ['url', 'pool', 'schema']

function checkOptions(options: PostgresStoreOptions): void {
  const found = problems('postgresStore')
  found.knownKeys(options, KNOWN)
  const problem = addressProblem(options)
  if (problem !== undefined) found.add(problem)
  found.throwIfAny()
  checkSchemaName(options.schema ?? 'millrace')
}

async function connect(
  address: PgAddress,
  schema: string,
  { clock, random, signal, migrate }: ConnectContext,
): Promise<Store> {
  signal.throwIfAborted()
  const pool = await pgPool(address, { clock })
  try {
    await migratePg(pool, schema, storeSchema, migrate, { clock, random, signal })
  } catch (error) {
    await pool.close()
    throw error
  }
  return guardedStore({
    name: NAME,
    clock: 'server',
    durability: 'disk',
    parts: partsOf(pool, schema),
    diagnose: pgFault,
    end: () => pool.close(),
  })
}

function partsOf(pool: PgPool, schema: string): StoreParts {
  const sql = statementsIn(schema)
  const database: Database = { sql, query: pool.query }
  const prunes = [
    sql.PRUNE_KEYS,
    sql.PRUNE_JOURNAL,
    sql.PRUNE_LEASES,
    sql.PRUNE_SLOTS,
    sql.PRUNE_BUCKETS,
    sql.PRUNE_COUNTERS,
  ]
  return {
    keys: postgresKeys(database),
    delayed: postgresDelayed(database),
    shelf: postgresShelf(database),
    journal: postgresJournal(database),
    leases: postgresLeases(database),
    slots: postgresSlots(database),
    buckets: postgresBuckets(database),
    counters: postgresCounters(database),
    states: postgresStates(database),
    async prune(max) {
      let pruned = 0
      for (const prune of prunes) {
        if (pruned >= max) break
        const [row] = await pool.query(prune, [max - pruned])
        pruned += Number(row?.n ?? 0)
      }
      return pruned
    },
  }
}
