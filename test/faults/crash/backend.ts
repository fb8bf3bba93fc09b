import { DatabaseSync } from 'node:sqlite'
import { type App, type Connector, createMillrace, defineQueue, silentLogger } from 'millrace'
import { postgresInbox, sqliteInbox } from 'millrace/inbox'
import { sqlite } from 'millrace/sqlite'
import { sqliteStore } from 'millrace/store'
import type pg from 'pg'
import { z } from 'zod'

export const LEVELS = 3

/** Where a campaign runs; travels to the child processes as JSON. */
export type BackendSpec =
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly schema: string }
  | {
      readonly kind: 'redis' | 'nats' | 'sqs' | 'rabbitmq'
      readonly url: string
      readonly prefix: string
      readonly file: string
      /** Messages are sent on so many levels of priority in turn; absent: on one. */
      readonly levels?: number
      /** They take turns by a fair key. */
      readonly fair?: true
    }
  | {
      readonly kind: 'kafka'
      readonly retry: 'hold' | 'park'
      readonly url: string
      readonly prefix: string
      readonly file: string
    }

/** Short runs, so that the lease (handlerTimeoutMs + 5 s) and with it the recovery is as short as it gets. */
const common = {
  name: 'victims',
  owner: 'team-chaos',
  payload: z.object({ key: z.string() }),
  idempotencyKey: (payload: { readonly key: string }): string => payload.key,
  handlerTimeoutMs: 200,
  retry: { attempts: 20, baseMs: 50, maxMs: 200 },
  capacity: 'unbounded',
} as const

const plain = defineQueue(common)
/** Where a level of priority is a queue of the broker, it is named. */
const levelled = defineQueue({ ...common, priorities: LEVELS })
const sharing = defineQueue({ ...common, fairBy: ({ key }) => `tenant-${key.at(-1)}` })

export interface Stand {
  readonly app: App<unknown>
  readonly victims: typeof plain
  /** Adds one row for the key inside the transaction: the effect that must happen once. */
  readonly effect: (tx: unknown, key: string) => unknown
  /** How often each key's effect is in the database. Read through a connection of its own. */
  effects(): Promise<ReadonlyMap<string, number>>
  close(): Promise<void>
}

export async function openStand(
  spec: BackendSpec,
  wrap: (connector: Connector) => Connector = (connector) => connector,
): Promise<Stand> {
  switch (spec.kind) {
    case 'sqlite':
      return await openSqlite(sqlite({ file: spec.file }), spec, wrap)
    case 'postgres':
      return await openPostgres(spec, wrap)
    case 'redis': {
      const { redis } = await import('millrace/redis')
      const { url, prefix } = spec
      return await openSqlite(redis({ url, prefix }), spec, wrap)
    }
    case 'nats': {
      const { nats } = await import('millrace/nats')
      const { url, prefix } = spec
      return await openSqlite(nats({ servers: url, prefix, ackWaitMs: 1_000 }), spec, wrap, true)
    }
    case 'rabbitmq': {
      const { rabbitmq } = await import('millrace/rabbitmq')
      const { url, prefix } = spec
      return await openSqlite(rabbitmq({ url, prefix: `${prefix}-` }), spec, wrap, true)
    }
    case 'sqs': {
      const { sqs } = await import('millrace/sqs')
      const { url, prefix } = spec
      const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }
      const at = { endpoint: url, region: 'us-east-1', credentials }
      return await openSqlite(sqs({ ...at, prefix: `${prefix}-` }), spec, wrap, true)
    }
    case 'kafka': {
      const { kafka } = await import('millrace/kafka')
      const { url, prefix, retry } = spec
      // As many partitions as workers; a killed one is noticed at the end of its session.
      const quick = { sessionTimeoutMs: 3_000, heartbeatMs: 200, revokeDrainMs: 500 }
      const at = { brokers: url.split(','), prefix: `${prefix}-`, partitions: 3, ...quick }
      return await openSqlite(kafka({ ...at, retry }), spec, wrap, true)
    }
  }
}

/** Redis knows priorities without being told how many. */
function hasQueues(spec: BackendSpec): boolean {
  return spec.kind !== 'redis' && 'levels' in spec && spec.levels !== undefined
}

/** Effects and inbox in a file, whatever carries the messages. */
async function openSqlite(
  connector: Connector,
  spec: Exclude<BackendSpec, { kind: 'postgres' }>,
  wrap: (connector: Connector) => Connector,
  needsStore = false,
): Promise<Stand> {
  const { file } = spec
  const victims = 'fair' in spec ? sharing : hasQueues(spec) ? levelled : plain
  const db = new DatabaseSync(file, { timeout: 10_000 })
  db.exec('PRAGMA journal_mode = WAL')
  db.exec('CREATE TABLE IF NOT EXISTS effects (key TEXT NOT NULL)')
  const app = await createMillrace({
    queues: [victims],
    logger: silentLogger,
    transport: wrap(connector),
    ...(needsStore && { store: sqliteStore({ file }) }),
    inbox: sqliteInbox({ db }),
  })
  return {
    app: app as App<unknown>,
    victims,
    effect: (tx, key) =>
      (tx as DatabaseSync).prepare('INSERT INTO effects (key) VALUES (?)').run(key),
    effects: async () => {
      const rows = db.prepare('SELECT key, count(*) AS n FROM effects GROUP BY key').all()
      return new Map(rows.map((row) => [String(row['key']), Number(row['n'])]))
    },
    close: async () => {
      await app.close({ timeoutMs: 0 })
      db.close()
    },
  }
}

async function openPostgres(
  spec: BackendSpec & { kind: 'postgres' },
  wrap: (connector: Connector) => Connector,
): Promise<Stand> {
  const { Pool } = (await import('pg')).default
  const { postgres } = await import('millrace/postgres')
  const pool = new Pool({ connectionString: spec.url, max: 6 })
  pool.on('error', () => undefined)
  const { schema } = spec
  const app = await createMillrace({
    queues: [plain],
    logger: silentLogger,
    transport: wrap(postgres({ pool, schema })),
    inbox: postgresInbox({ pool, schema }),
  })
  await pool.query(`CREATE TABLE IF NOT EXISTS ${schema}.effects (key text NOT NULL)`)
  return {
    app: app as App<unknown>,
    victims: plain,
    effect: (tx, key) =>
      (tx as pg.PoolClient).query(`INSERT INTO ${schema}.effects (key) VALUES ($1)`, [key]),
    effects: async () => {
      const { rows } = await pool.query<{ key: string; n: string }>(
        `SELECT key, count(*) AS n FROM ${schema}.effects GROUP BY key`,
      )
      return new Map(rows.map((row) => [row.key, Number(row.n)]))
    },
    close: async () => {
      await app.close({ timeoutMs: 0 })
      await pool.end()
    },
  }
}
