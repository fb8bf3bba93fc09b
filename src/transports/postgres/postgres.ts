import { closedError } from '../../model/closed-error.ts'
import { problems, show } from '../../model/problems.ts'
import { migratePg, pgDatabaseId, printMigrations } from '../../sql/pg-migrate.ts'
import { checkSchemaName } from '../../sql/pg-name.ts'
import { addressProblem, type PgAddress, pgPool } from '../../sql/pg-open.ts'
import type { PgPool } from '../../sql/pg-pool.ts'
import { isPostgresJs } from '../../sql/pg-shapes.ts'
import type { StoringConnector } from '../../store/store.ts'
import { postgresStore } from '../../stores/postgres/postgres-store.ts'
import { openBell } from '../../transport/bell.ts'
import type { ConnectContext, Transport } from '../../transport/transport.ts'
import { openAnnouncer } from './announcer.ts'
import { deafEar, openEar } from './ear.ts'
import { queueSchema } from './schema.ts'
import { type Store, statementsIn } from './store.ts'
import { readIdentity } from './transaction.ts'
import { postgresTransport } from './transport.ts'

export type PostgresOptions = PostgresSettings & PgAddress

export interface PostgresSettings {
  /** The schema that holds our tables, made when missing. Default `millrace`. */
  readonly schema?: string
  /**
   * Whether one connection listens for new messages. Default true. Pass false behind PgBouncer in transaction mode,
   * where nothing is ever heard; polling does it all then.
   */
  readonly listen?: boolean
  /** How often a receive that waits looks for work, in ms; 10 to 60,000. Default 1,000 when listening, else 250. */
  readonly pollMs?: number
  /** How long a call may take, connecting included, in ms; 100 to 600,000. Default 30,000. */
  readonly timeoutMs?: number
  /**
   * Whether a send in your transaction announces itself when you commit. Default true. NOTIFY takes one lock for the
   * whole server at commit: with many small transactions, false is faster and messages wait for the next poll.
   */
  readonly notifyInTransaction?: boolean
}

interface Resolved {
  readonly address: PgAddress
  readonly schema: string
  readonly listen: boolean
  readonly pollMs: number | undefined
  readonly timeoutMs: number
  readonly notifyInTransaction: boolean
}

/**
 * Queues in a Postgres database, version 13 or newer, shared by any number of processes.
 *
 * @example
 * const app = await createMillrace({ transport: postgres({ url: 'postgres://localhost/shop' }), queues: [deliveries] })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function postgres(options: PostgresOptions): StoringConnector {
  const resolved = resolve(options)
  return {
    name: 'postgres',
    connect: (context) => connect(resolved, context),
    migrationSql: () => printMigrations(resolved.schema, queueSchema),
    ownStore: () => {
      const { address, schema } = resolved
      return postgresStore(
        address.url === undefined ? { pool: address.pool, schema } : { url: address.url, schema },
      )
    },
  }
}

async function connect(options: Resolved, context: ConnectContext): Promise<Transport> {
  const { clock, random, signal, migrate } = context
  const { schema, timeoutMs } = options
  signal.throwIfAborted()
  const pool = await pgPool(options.address, { clock, timeoutMs })
  try {
    await migratePg(pool, schema, queueSchema, migrate, { clock, random, signal })
    const databaseId = await pgDatabaseId({ execute: pool.query }, schema)
    if (databaseId === undefined) throw new Error(`schema ${schema} vanished after its migration`)
    const sql = statementsIn(schema)
    const identity = await readIdentity({ sql, schema }, { execute: pool.query })
    const { store, end } = openStore(pool, options, context, databaseId)
    const facts = isPostgresJs(options.address.pool) ? [POSTGRES_JS_ENDS] : []
    return postgresTransport({ store, databaseId, identity, facts, end })
  } catch (error) {
    await pool.close()
    throw error
  }
}

/** Thrown in a setImmediate of its own, so no call of ours could catch it: its README.md, Limits. */
const POSTGRES_JS_ENDS =
  'postgres.js (3.4.9 and before): a connection that the server ends while it is written to can end this process (porsager/postgres #1066); a Pool of pg stays up'

interface Opened {
  readonly store: Store
  readonly end: () => Promise<void>
}

function openStore(
  pool: PgPool,
  options: Resolved,
  { clock, random, logger }: ConnectContext,
  databaseId: string,
): Opened {
  const { schema, listen, pollMs, notifyInTransaction } = options
  const closing = new AbortController()
  const bell = openBell<number>(clock)
  const channel = channelOf(databaseId)
  const hear = (queueId: number | undefined): void => bell.ring(queueId)
  const ear = listen ? openEar({ pool, channel, clock, random, logger, hear }) : deafEar
  const announcer = openAnnouncer(pool, channel, clock)
  const store: Store = {
    pool,
    schema,
    clock,
    random,
    logger,
    bell,
    ear,
    announcer,
    channel,
    pollMs,
    notifyInTransaction,
    sql: statementsIn(schema),
    owner: `millrace-${Math.floor(random() * 2 ** 32).toString(16)}`,
    closing: closing.signal,
    queueIds: new Map(),
  }
  const end = async (): Promise<void> => {
    closing.abort(closedError('the transport'))
    ear.close()
    announcer.close()
    bell.close()
    await pool.close()
  }
  return { store, end }
}

/** One channel for each schema of a database; its name may have 63 bytes. */
function channelOf(databaseId: string): string {
  return `millrace_${databaseId.slice('postgres:'.length).split('@', 1)[0]}`
}

const KNOWN = ['url', 'pool', 'schema', 'listen', 'pollMs', 'timeoutMs', 'notifyInTransaction']

function resolve(options: PostgresOptions): Resolved {
  const found = problems('postgres')
  found.knownKeys(options, KNOWN)
  const { schema = 'millrace', listen = true, pollMs, notifyInTransaction = true } = options
  const address = addressProblem(options)
  if (address !== undefined) found.add(address)
  for (const problem of schemaProblems(schema)) found.add(problem)
  for (const [name, value] of Object.entries({ listen, notifyInTransaction })) {
    if (typeof value !== 'boolean') found.add(`${name}: expected true or false, got ${show(value)}`)
  }
  found.number('pollMs', pollMs, { ...POLL, integer: false })
  const timeoutMs = found.number('timeoutMs', options.timeoutMs, { ...TIMEOUT, integer: false })
  found.throwIfAny()
  return { address: options, schema, listen, pollMs, timeoutMs, notifyInTransaction }
}

const POLL = { min: 10, max: 60_000, default: 250 } as const
const TIMEOUT = { min: 100, max: 600_000, default: 30_000 } as const

function schemaProblems(schema: unknown): readonly string[] {
  try {
    checkSchemaName(schema)
    return []
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)]
  }
}
