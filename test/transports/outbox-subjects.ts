import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { type Outbox, type OutboxContext, postgresOutbox, sqliteOutbox } from 'millrace/outbox'
import { type Clock, systemClock } from '../../src/model/clock.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { SqliteHandle } from '../../src/sql/executor.ts'
import {
  dropSchema,
  freshSchema,
  jsPool,
  nodePool,
  pgBouncer,
  postgresServers,
  type TestServer,
} from './postgres-servers.ts'
import { databaseFile } from './sqlite-harness.ts'

/** A transaction that the user has open. */
export interface UserTransaction {
  readonly tx: unknown
  commit(): Promise<void>
  rollback(): Promise<void>
}

/** One client on one database. */
export interface OutboxSubject {
  /** What the conflict with a second library is about: `sqlite` or `postgres`. */
  readonly kind: 'sqlite' | 'postgres'
  connect(): Promise<Outbox>
  begin(): Promise<UserTransaction>
  foreign(): readonly unknown[]
  dispose(): Promise<void>
}

export interface OutboxClient {
  readonly name: string
  open(clock?: Clock): Promise<OutboxSubject>
}

/** Registers tests that get an open outbox each, on a subject of their own. */
export function withOutbox<Subject extends OutboxSubject>(
  name: string,
  open: () => Promise<Subject>,
): (what: string, check: (subject: Subject, outbox: Outbox) => Promise<void>) => void {
  return (what, check) =>
    void test(`${name}: ${what}`, async () => {
      const subject = await open()
      const outbox = await subject.connect()
      try {
        await check(subject, outbox)
      } finally {
        await outbox.close()
        await subject.dispose()
      }
    })
}

export function outboxContext(clock: Clock = systemClock()): OutboxContext {
  return {
    signal: new AbortController().signal,
    clock,
    random: Math.random,
    logger: silentLogger,
    migrate: 'auto',
  }
}

let made = 0

export function envelope(more: Partial<Envelope> = {}): Envelope {
  made += 1
  return {
    id: `m-${process.pid}-${made}`,
    body: new Uint8Array([0, 34, 92, 255, made % 256]),
    headers: {},
    priority: 0,
    ...more,
  }
}

/** Adds in a transaction of its own and commits. */
export async function add(
  subject: OutboxSubject,
  outbox: Outbox,
  batch: readonly Envelope[],
  queue = 'orders',
): Promise<void> {
  const user = await subject.begin()
  const rows = await outbox.transaction(user.tx)
  if (rows === undefined)
    throw new Error('the outbox does not know the transaction of its own database')
  await rows.add(queue, batch)
  await user.commit()
}

export const sqliteOutboxClients: readonly OutboxClient[] = [
  {
    name: 'sqlite: a file',
    open: (clock) => onFile((path) => new DatabaseSync(path), 'file', clock),
  },
  {
    name: 'sqlite: a handle of node:sqlite',
    open: (clock) => onFile((path) => new DatabaseSync(path), 'db', clock),
  },
  {
    name: 'sqlite: a handle of better-sqlite3',
    open: (clock) => onFile((path) => new Database(path), 'db', clock),
  },
  { name: 'sqlite: a handle in memory', open: inMemory },
]

function sqliteTransaction(db: SqliteHandle, close: () => void): UserTransaction {
  db.exec('BEGIN IMMEDIATE')
  const end = async (how: string): Promise<void> => {
    db.exec(how)
    close()
  }
  return { tx: db, commit: () => end('COMMIT'), rollback: () => end('ROLLBACK') }
}

async function onFile(
  open: (path: string) => SqliteHandle,
  how: 'file' | 'db',
  clock?: Clock,
): Promise<OutboxSubject> {
  const { file, dispose } = await databaseFile()
  const db = open(file)
  return {
    kind: 'sqlite',
    connect: () => sqliteOutbox(how === 'file' ? { file } : { db }).connect(outboxContext(clock)),
    begin: async () => {
      const user = how === 'db' ? db : open(file)
      return sqliteTransaction(user, () => void (user === db || user.close()))
    },
    foreign: foreignTransactions,
    dispose: async () => {
      db.close()
      await dispose()
    },
  }
}

async function inMemory(clock?: Clock): Promise<OutboxSubject> {
  const db = new DatabaseSync(':memory:')
  return {
    kind: 'sqlite',
    connect: () => sqliteOutbox({ db }).connect(outboxContext(clock)),
    begin: async () => sqliteTransaction(db, () => {}),
    foreign: foreignTransactions,
    dispose: async () => db.close(),
  }
}

function foreignTransactions(): readonly unknown[] {
  const other = new DatabaseSync(':memory:')
  other.exec('BEGIN')
  return [other, {}, 'tx', 7, null, undefined, { query: () => [] }]
}

export interface PostgresOutboxSubject extends OutboxSubject {
  readonly url: string
  readonly schema: string
}

export interface PostgresOutboxClient extends OutboxClient {
  /** Behind a pooler with two connections to the server. */
  readonly pooled: boolean
  open(): Promise<PostgresOutboxSubject>
}

type Begin = (url: string) => {
  readonly begin: () => Promise<UserTransaction>
  readonly end: () => Promise<unknown>
}

export function postgresOutboxClients(): readonly PostgresOutboxClient[] {
  const pooled = pgBouncer()
  const of = (server: TestServer, what: string, begin: Begin): PostgresOutboxClient => ({
    name: `${server.name}: ${what}`,
    pooled: server.pooled,
    open: () => onPostgres(server.url, begin),
  })
  return [
    ...postgresServers().flatMap((server) => [
      of(server, 'a client of pg', withPg),
      of(server, 'a transaction of postgres.js', withPostgresJs),
      of(server, 'an adapter', withAdapter),
    ]),
    ...(pooled === undefined ? [] : [of(pooled, 'a client of pg', withPg)]),
  ]
}

const withPg: Begin = (url) => {
  const pool = nodePool(url)
  return {
    begin: async () => {
      const client = await pool.connect()
      await client.query('BEGIN')
      const end = async (how: string): Promise<void> => {
        await client.query(how)
        client.release()
      }
      return { tx: client, commit: () => end('COMMIT'), rollback: () => end('ROLLBACK') }
    },
    // A test that failed may have left a client out.
    end: () => Promise.race([pool.end(), sleep(1_000)]),
  }
}

const withPostgresJs: Begin = (url) => {
  const sql = jsPool(url)
  return {
    begin: async () => {
      const begun = Promise.withResolvers<unknown>()
      const ending = Promise.withResolvers<void>()
      const over = sql.begin(async (tx) => {
        begun.resolve(tx)
        await ending.promise
      })
      return {
        tx: await begun.promise,
        commit: async () => {
          ending.resolve()
          await over
        },
        rollback: async () => {
          ending.reject(new Error('rolled back by the test'))
          await over.then(
            () => {},
            () => {},
          )
        },
      }
    },
    end: () => sql.end({ timeout: 1 }),
  }
}

const withAdapter: Begin = (url) => {
  const { begin, end } = withPg(url)
  return {
    begin: async () => {
      const user = await begin()
      const client = user.tx as { query(sql: string, params: unknown[]): Promise<{ rows: [] }> }
      const execute = async (sql: string, params: readonly unknown[]): Promise<readonly []> =>
        (await client.query(sql, [...params])).rows
      return { ...user, tx: { execute } }
    },
    end,
  }
}

async function onPostgres(url: string, start: Begin): Promise<PostgresOutboxSubject> {
  const schema = freshSchema()
  const { begin, end } = start(url)
  const pool = nodePool(url)
  const elsewhere = nodePool(url, 1)
  return {
    kind: 'postgres',
    url,
    schema,
    connect: () => postgresOutbox({ pool, schema }).connect(outboxContext()),
    begin,
    // A pool is no transaction: its statements land on any connection.
    foreign: () => [elsewhere, ...foreignTransactions()],
    dispose: async () => {
      await end()
      await pool.end()
      await elsewhere.end()
      await dropSchema(url, schema)
    },
  }
}
