import { read } from '../../model/probe.ts'
import { problems } from '../../model/problems.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import { sqliteFault } from '../../sql/sqlite-fault.ts'
import { prepared } from '../../sql/sqlite-handle.ts'
import {
  checkSynchronous,
  locationProblems,
  openLocation,
  refuseMissing,
} from '../../sql/sqlite-location.ts'
import { migrateSqlite, printSqliteMigrations } from '../../sql/sqlite-migrate.ts'
import type { Synchronous } from '../../sql/sqlite-open.ts'
import type { Store, StoreConnector } from '../../store/store.ts'
import type { ConnectContext } from '../../transport/transport.ts'
import { guardedStore, type StoreParts } from '../guarded-store.ts'
import { type Database, openDatabase } from './database.ts'
import { sqliteDelayed } from './delayed.ts'
import { sqliteJournal } from './journal.ts'
import { sqliteKeys } from './keys.ts'
import { sqliteLeases } from './leases.ts'
import { sqliteBuckets, sqliteCounters } from './numbers.ts'
import { storeSchema } from './schema.ts'
import { sqliteShelf } from './shelf.ts'
import { sqliteSlots } from './slots.ts'
import { PRUNES } from './statements.ts'
import { sqliteStates } from './states.ts'

export type SqliteStoreOptions = SqliteStoreSettings &
  (
    | {
        /** Path of the database file; its folder must exist. */
        readonly file: string
        readonly db?: never
      }
    | {
        /** Your own handle: node:sqlite's DatabaseSync or better-sqlite3's Database. A file is opened once more beside it. */
        readonly db: SqliteHandle
        readonly file?: never
      }
  )

export interface SqliteStoreSettings {
  /** What a power cut may lose: `full` nothing, `normal` the last moments. Default `full`. Not applied to `db`. */
  readonly synchronous?: Synchronous
}

/**
 * A store in a SQLite file, for all workers on one machine. The file may be that of inbox, outbox and transport.
 *
 * @example
 * const app = await createMillrace({ transport, store: sqliteStore({ file: 'store.db' }), queues })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function sqliteStore(options: SqliteStoreOptions): StoreConnector {
  checkOptions(options)
  const given = Object.freeze({ ...options })
  return {
    name: NAME,
    connect: (context) => connect(given, context),
    migrationSql: () => printSqliteMigrations(storeSchema),
  }
}

const NAME = 'sqlite'
const KNOWN: readonly string[] = ['file', 'db', 'synchronous']

function checkOptions(options: object): void {
  const found = problems('sqliteStore')
  found.knownKeys(options, KNOWN)
  for (const problem of locationProblems(options)) found.add(problem)
  checkSynchronous(read(options, 'synchronous') ?? 'full', found)
  found.throwIfAny()
}

async function connect(options: SqliteStoreOptions, context: ConnectContext): Promise<Store> {
  const { clock, random, signal, migrate } = context
  const { synchronous = 'full' } = options
  signal.throwIfAborted()
  const location = options.db === undefined ? { file: options.file } : { db: options.db }
  if (migrate === 'check') refuseMissing('sqliteStore', location)
  const own = await openLocation('sqliteStore', location, { clock, signal, synchronous })
  const { handle, shared } = own
  try {
    await migrateSqlite(handle, storeSchema, { clock, signal, migrate, random })
  } catch (error) {
    if (!shared) handle.close()
    throw error
  }
  const database = openDatabase({ handle, shared, clock, random })
  return guardedStore({
    name: NAME,
    clock: 'caller',
    durability: shared ? 'process' : 'disk',
    parts: partsOf(database),
    diagnose: sqliteFault,
    problems: own.problems,
    end: async () => database.close(),
  })
}

function partsOf(database: Database): StoreParts {
  const { handle, now, write } = database
  return {
    keys: sqliteKeys(database),
    delayed: sqliteDelayed(database),
    shelf: sqliteShelf(database),
    journal: sqliteJournal(database),
    leases: sqliteLeases(database),
    slots: sqliteSlots(database),
    buckets: sqliteBuckets(database),
    counters: sqliteCounters(database),
    states: sqliteStates(database),
    prune: (max) =>
      write(() => {
        let pruned = 0
        for (const prune of PRUNES) {
          if (pruned >= max) break
          pruned += Number(prepared(handle, prune).run(now(), max - pruned).changes)
        }
        return pruned
      }),
  }
}
