import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../model/clock.ts'
import { closedError } from '../model/closed-error.ts'
import { read } from '../model/probe.ts'
import { problems } from '../model/problems.ts'
import type { SqliteHandle } from '../sql/executor.ts'
import { prepared, sqliteClient } from '../sql/sqlite-handle.ts'
import {
  checkSynchronous,
  locationProblems,
  openLocation,
  refuseMissing,
  refuseReadOnlyHandle,
} from '../sql/sqlite-location.ts'
import { migrateSqlite, printSqliteMigrations, sqliteDatabaseId } from '../sql/sqlite-migrate.ts'
import { whenFree, withWriteTransaction } from '../sql/sqlite-write.ts'
import type { Inbox, InboxConnector, InboxContext, InboxKey } from './inbox.ts'
import { storedKey } from './key.ts'
import { runOnSqlite } from './sqlite-run.ts'
import { sqliteInboxSchema } from './sqlite-schema.ts'
import { PRUNE, RECORD, SEEN } from './sqlite-statements.ts'
import { sqliteTurns } from './sqlite-turns.ts'
import { resolveTtlMs, ttlProblems } from './ttl.ts'

export interface SqliteInboxSettings {
  /** How long a handled key is remembered, in ms. Default: as long as the queues need, at least 7 days. */
  readonly ttlMs?: number
  /** What a power cut may lose: `full` nothing, `normal` the last moments. Default `full`. Not applied to `db`. */
  readonly synchronous?: 'full' | 'normal'
}

export interface SqliteInboxFile extends SqliteInboxSettings {
  /** Path of the database file; its folder must exist. The effect gets a `DatabaseSync` of ours on it. */
  readonly file: string
  readonly db?: never
}

export interface SqliteInboxHandle<Tx extends SqliteHandle> extends SqliteInboxSettings {
  /**
   * Your own handle: node:sqlite's DatabaseSync or better-sqlite3's Database. Effects run in transactions on it, as
   * soon as you have none open yourself.
   */
  readonly db: Tx
  readonly file?: never
}

/**
 * Remembers handled keys in your SQLite database. Effects are synchronous functions.
 *
 * @example
 * const app = await createMillrace({ transport: sqlite({ file }), queues, inbox: sqliteInbox({ file }) })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function sqliteInbox(options: SqliteInboxFile): InboxConnector<DatabaseSync>
export function sqliteInbox<Tx extends SqliteHandle>(
  options: SqliteInboxHandle<Tx>,
): InboxConnector<Tx>
export function sqliteInbox<Tx extends SqliteHandle>(
  options: SqliteInboxFile | SqliteInboxHandle<Tx>,
): InboxConnector<DatabaseSync> | InboxConnector<Tx> {
  checkOptions(options)
  const given = Object.freeze({ ...options })
  if (given.file === undefined) {
    const { db } = given
    return { name: NAME, connect: (context) => connectHandle(db, given, context), migrationSql }
  }
  const { file } = given
  return { name: NAME, connect: (context) => connectFile(file, given, context), migrationSql }
}

const migrationSql = (): string => printSqliteMigrations(sqliteInboxSchema)

const NAME = 'sqlite'
const KNOWN: readonly string[] = ['file', 'db', 'ttlMs', 'synchronous']

function checkOptions(options: object): void {
  const found = problems('sqliteInbox')
  found.knownKeys(options, KNOWN)
  for (const problem of locationProblems(options)) found.add(problem)
  for (const problem of ttlProblems(read(options, 'ttlMs'))) found.add(problem)
  checkSynchronous(read(options, 'synchronous') ?? 'full', found)
  found.throwIfAny()
}

async function connectFile(
  file: string,
  settings: SqliteInboxSettings,
  context: InboxContext,
): Promise<Inbox<DatabaseSync>> {
  const ttlMs = resolveTtlMs('sqliteInbox', settings.ttlMs, context.neededTtlMs)
  const { synchronous = 'full' } = settings
  if (context.migrate === 'check') refuseMissing('sqliteInbox', { file })
  const { handle, problems } = await openLocation(
    'sqliteInbox',
    { file },
    { ...context, synchronous },
  )
  if (!isDatabaseSync(handle)) throw new Error('a file is always opened through node:sqlite')
  return await open({ own: handle, shared: false, problems, effects: handle, ttlMs, context })
}

async function connectHandle<Tx extends SqliteHandle>(
  db: Tx,
  settings: SqliteInboxSettings,
  context: InboxContext,
): Promise<Inbox<Tx>> {
  const ttlMs = resolveTtlMs('sqliteInbox', settings.ttlMs, context.neededTtlMs)
  const { synchronous = 'full' } = settings
  const own = await openLocation('sqliteInbox', { db }, { ...context, synchronous })
  const { handle, shared, problems } = own
  return await open({ own: handle, shared, problems, effects: db, ttlMs, context })
}

function isDatabaseSync(handle: SqliteHandle): handle is SqliteHandle & DatabaseSync {
  return sqliteClient(handle) === 'node:sqlite'
}

interface Opened<Tx extends SqliteHandle> {
  /** For everything but effects. */
  readonly own: SqliteHandle
  readonly shared: boolean
  readonly problems: () => readonly string[]
  readonly effects: Tx
  readonly ttlMs: number
  readonly context: InboxContext
}

async function open<Tx extends SqliteHandle>(opened: Opened<Tx>): Promise<Inbox<Tx>> {
  const { own, context } = opened
  try {
    await migrateSqlite(own, sqliteInboxSchema, context)
    refuseReadOnlyHandle('sqliteInbox', { db: opened.effects })
    return inbox(opened, sqliteDatabaseId(own))
  } catch (error) {
    if (!opened.shared) own.close()
    throw error
  }
}

function inbox<Tx extends SqliteHandle>(opened: Opened<Tx>, databaseId: string): Inbox<Tx> {
  const { own, effects, ttlMs, shared } = opened
  const ours = own === effects && !shared
  const { clock, random } = opened.context
  const mayBegin = sqliteTurns(clock)
  const closed = new AbortController()
  const closing = closed.signal
  const write = <T>(work: () => T): Promise<T> =>
    ready(closing, () => withWriteTransaction(own, clock, closing, work, { random }))

  return {
    name: NAME,
    databaseId,
    ttlMs,
    effects: 'sync',
    seen: (keys) =>
      ready(closing, () => whenFree(own, clock, closing, () => seen(own, clock, keys), { random })),
    run: (key, work) =>
      ready(closing, () =>
        runOnSqlite({ handle: effects, ours, clock, random, ttlMs, closing, mayBegin }, key, work),
      ),
    record: (keys) => (keys.length === 0 ? Promise.resolve() : write(() => record(keys))),
    problems: opened.problems,
    prune: (max) => write(() => Number(prepared(own, PRUNE).run(clock.now(), max).changes)),
    close: async () => {
      if (closing.aborted) return
      closed.abort(closedError('the inbox'))
      if (!shared) own.close()
    },
  }

  function record(keys: readonly InboxKey[]): void {
    const now = clock.now()
    for (const { queue, key } of keys) {
      prepared(own, RECORD).run(queue, storedKey(key), now, now + ttlMs)
    }
  }
}

/** A prepared look-up costs less than building one statement for all. */
function seen(own: SqliteHandle, clock: Clock, keys: readonly InboxKey[]): readonly boolean[] {
  const now = clock.now()
  return keys.map(
    ({ queue, key }) => prepared(own, SEEN).get(queue, storedKey(key), now) !== undefined,
  )
}

async function ready<T>(closing: AbortSignal, call: () => Promise<T>): Promise<T> {
  if (closing.aborted) throw closedError('the inbox')
  return await call()
}
