import { DatabaseSync } from 'node:sqlite'
import Database from 'better-sqlite3'
import { type Inbox, type InboxContext, postgresInbox, sqliteInbox } from 'millrace/inbox'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { MaybePromise } from '../../src/model/maybe-promise.ts'
import type { SqliteHandle } from '../../src/sql/executor.ts'
import { pgExecutor } from '../../src/sql/pg-executor.ts'
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

/** One client on one database, with a table for effects in it. */
export interface InboxSubject {
  connect(settings?: { readonly ttlMs?: number }): Promise<Inbox<unknown>>
  /** The effect: one row. At once where the client is synchronous. */
  effect(tx: unknown, n: number): MaybePromise<void>
  execute(tx: unknown, sql: string): MaybePromise<unknown>
  /** Seen from a connection of its own. */
  effects(): Promise<readonly number[]>
  recorded(): Promise<number>
  dispose(): Promise<void>
}

export interface InboxClient {
  readonly name: string
  open(): Promise<InboxSubject>
}

export const DAY_MS = 86_400_000

export function inboxContext(more: Partial<InboxContext> = {}): InboxContext {
  return {
    signal: new AbortController().signal,
    clock: systemClock(),
    random: Math.random,
    logger: silentLogger,
    migrate: 'auto',
    neededTtlMs: 1,
    ...more,
  }
}

export const sqliteInboxClients: readonly InboxClient[] = [
  { name: 'sqlite: a file', open: ownFile },
  {
    name: 'sqlite: a handle of node:sqlite',
    open: () => userHandle((file) => new DatabaseSync(file)),
  },
  {
    name: 'sqlite: a handle of better-sqlite3',
    open: () => userHandle((file) => new Database(file)),
  },
  { name: 'sqlite: a handle in memory', open: memoryHandle },
]

const CREATE = 'CREATE TABLE effect (n INTEGER NOT NULL)'

async function ownFile(): Promise<InboxSubject> {
  const { file, dispose } = await databaseFile()
  const look = new DatabaseSync(file)
  look.exec(CREATE)
  return {
    ...onSqlite(look),
    connect: (settings = {}) => sqliteInbox({ file, ...settings }).connect(inboxContext()),
    dispose: async () => {
      look.close()
      await dispose()
    },
  }
}

async function userHandle(open: (file: string) => SqliteHandle): Promise<InboxSubject> {
  const { file, dispose } = await databaseFile()
  const db = open(file)
  const look = open(file)
  look.exec(CREATE)
  return {
    ...onSqlite(look),
    connect: (settings = {}) => sqliteInbox({ db, ...settings }).connect(inboxContext()),
    dispose: async () => {
      look.close()
      db.close()
      await dispose()
    },
  }
}

async function memoryHandle(): Promise<InboxSubject> {
  const db = new DatabaseSync(':memory:')
  db.exec(CREATE)
  return {
    ...onSqlite(db),
    connect: (settings = {}) => sqliteInbox({ db, ...settings }).connect(inboxContext()),
    dispose: async () => db.close(),
  }
}

function onSqlite(look: SqliteHandle): Omit<InboxSubject, 'connect' | 'dispose'> {
  return {
    effect: (tx, n) => void (tx as SqliteHandle).prepare('INSERT INTO effect VALUES (?)').run(n),
    execute: (tx, sql) => (tx as SqliteHandle).exec(sql),
    effects: async () => column(look.prepare('SELECT n FROM effect ORDER BY n').all(), 'n'),
    recorded: async () =>
      column(look.prepare('SELECT count(*) AS n FROM millrace_inbox').all(), 'n')[0] ?? 0,
  }
}

export interface PostgresInboxSubject extends InboxSubject {
  readonly url: string
  readonly schema: string
}

export interface PostgresInboxClient extends InboxClient {
  readonly server: TestServer
  open(): Promise<PostgresInboxSubject>
}

export function postgresInboxClients(): readonly PostgresInboxClient[] {
  const pooled = pgBouncer()
  return [
    ...postgresServers().flatMap((server) => [
      client(server, 'an address', (url) => ({ from: { url }, end: async () => {} })),
      client(server, 'a Pool of pg', (url) => {
        const pool = nodePool(url)
        return { from: { pool }, end: () => pool.end() }
      }),
      client(server, 'a sql of postgres.js', (url) => {
        const sql = jsPool(url)
        // Without a limit it waits for ever once a connection was cut in a transaction.
        return { from: { pool: sql }, end: () => sql.end({ timeout: 1 }) }
      }),
    ]),
    ...(pooled === undefined
      ? []
      : [
          client(pooled, 'a Pool of pg', (url) => {
            const pool = nodePool(url)
            return { from: { pool }, end: () => pool.end() }
          }),
        ]),
  ]
}

interface Source {
  readonly from:
    | { readonly url: string }
    | { readonly pool: ReturnType<typeof nodePool> | ReturnType<typeof jsPool> }
  end(): Promise<unknown>
}

function client(
  server: TestServer,
  what: string,
  source: (url: string) => Source,
): PostgresInboxClient {
  return {
    name: `${server.name}: ${what}`,
    server,
    open: () => onPostgres(server.url, source(server.url)),
  }
}

async function onPostgres(url: string, { from, end }: Source): Promise<PostgresInboxSubject> {
  const schema = freshSchema()
  const quoted = `"${schema.replaceAll('"', '""')}"`
  const look = nodePool(url, 2)
  await look.query(`CREATE SCHEMA ${quoted}`)
  await look.query(`CREATE TABLE ${quoted}.effect (n integer NOT NULL)`)
  const execute = async (tx: unknown, sql: string): Promise<unknown> => {
    const executor = pgExecutor(tx)
    if (executor === undefined) throw new Error('the effect got something that is no transaction')
    return await executor.execute(sql, [])
  }
  return {
    url,
    schema,
    connect: (settings = {}) =>
      ('url' in from
        ? postgresInbox({ url: from.url, schema, ...settings })
        : postgresInbox({ pool: from.pool, schema, ...settings })
      ).connect(inboxContext()),
    effect: async (tx, n) => void (await execute(tx, `INSERT INTO ${quoted}.effect VALUES (${n})`)),
    execute,
    effects: async () =>
      column((await look.query(`SELECT n FROM ${quoted}.effect ORDER BY n`)).rows, 'n'),
    recorded: async () =>
      column((await look.query(`SELECT count(*)::int AS n FROM ${quoted}.inbox`)).rows, 'n')[0] ??
      0,
    dispose: async () => {
      await end()
      await look.end()
      await dropSchema(url, schema)
    },
  }
}

function column(rows: readonly unknown[], name: string): readonly number[] {
  return rows.map((row) => Number((row as Readonly<Record<string, unknown>>)[name]))
}
