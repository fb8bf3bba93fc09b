import { problems } from '../../model/problems.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import {
  checkSynchronous,
  locationProblems,
  openLocation,
  refuseMissing,
  refuseReadOnlyHandle,
} from '../../sql/sqlite-location.ts'
import { migrateSqlite, printSqliteMigrations, sqliteDatabaseId } from '../../sql/sqlite-migrate.ts'
import type { Synchronous } from '../../sql/sqlite-open.ts'
import { BUSY_TIMEOUT_MS } from '../../sql/sqlite-write.ts'
import type { StoringConnector } from '../../store/store.ts'
import { sqliteStore } from '../../stores/sqlite/sqlite-store.ts'
import type { ConnectContext, Transport } from '../../transport/transport.ts'
import { queueSchema } from './schema.ts'
import { openStore } from './store.ts'
import { sqliteTraits } from './traits.ts'
import { sqliteTransport } from './transport.ts'

export type SqliteOptions = SqliteSettings &
  (
    | {
        /** Path of the database file, made when missing; its folder must exist. */
        readonly file: string
        readonly db?: never
      }
    | {
        /**
         * Your own handle: node:sqlite's DatabaseSync or better-sqlite3's Database. Used only as `tx`; a second
         * connection to its file does the rest. A handle in memory is shared.
         */
        readonly db: SqliteHandle
        readonly file?: never
      }
  )

export interface SqliteSettings {
  /** What a power cut may lose: `full` nothing, `normal` the last moments. Default `full`. */
  readonly synchronous?: Synchronous
  /** How often a waiting receive looks for what other processes wrote, in ms; 1 to 60,000. Default 25. */
  readonly pollMs?: number
  /** How long to wait for another writer's lock, in ms; 0 to 600,000. Default 30,000; 20,000 at most while it is opened. */
  readonly busyTimeoutMs?: number
}

type Resolved = Required<SqliteSettings> &
  ({ readonly file: string } | { readonly db: SqliteHandle })

/**
 * Queues in one SQLite file, shared by any number of processes on one machine.
 *
 * @example
 * const app = await createMillrace({ transport: sqlite({ file: 'millrace.db' }), queues: [deliveries] })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function sqlite(options: SqliteOptions): StoringConnector {
  const resolved = resolve(options)
  return {
    name: 'sqlite',
    connect: (context) => connect(resolved, context),
    migrationSql: () => printSqliteMigrations(queueSchema),
    ownStore: () => {
      const { synchronous } = resolved
      return 'db' in resolved
        ? sqliteStore({ db: resolved.db, synchronous })
        : sqliteStore({ file: resolved.file, synchronous })
    },
  }
}

async function connect(options: Resolved, context: ConnectContext): Promise<Transport> {
  const { clock, signal, random, logger, migrate } = context
  const { pollMs, busyTimeoutMs, synchronous } = options
  signal.throwIfAborted()
  if (migrate === 'check') refuseMissing('sqlite', options)
  const own = await openLocation('sqlite', options, {
    ...{ clock, signal, synchronous, busyTimeoutMs },
  })
  const { handle, shared } = own
  try {
    await migrateSqlite(handle, queueSchema, { clock, signal, migrate, random, busyTimeoutMs })
    refuseReadOnlyHandle('sqlite', options)
    const databaseId = sqliteDatabaseId(handle)
    const store = openStore({
      handle,
      shared,
      synchronous,
      clock,
      random,
      logger,
      pollMs,
      busyTimeoutMs,
    })
    const traits = sqliteTraits(shared ? 'process' : 'disk')
    return { ...sqliteTransport(store, traits, databaseId), problems: own.problems }
  } catch (error) {
    if (!shared) handle.close()
    throw error
  }
}

const KNOWN: readonly string[] = ['file', 'db', 'synchronous', 'pollMs', 'busyTimeoutMs']

function resolve(options: SqliteOptions): Resolved {
  const found = problems('sqlite')
  found.knownKeys(options, KNOWN)
  const { file, db, synchronous = 'full' } = options
  for (const problem of locationProblems(options)) found.add(problem)
  checkSynchronous(synchronous, found)
  const settings = {
    synchronous,
    pollMs: found.number('pollMs', options.pollMs, { ...POLL, integer: false }),
    busyTimeoutMs: found.number('busyTimeoutMs', options.busyTimeoutMs, {
      ...BUSY,
      integer: false,
    }),
  }
  found.throwIfAny()
  return Object.freeze(db === undefined ? { ...settings, file: file ?? '' } : { ...settings, db })
}

const POLL = { min: 1, max: 60_000, default: 25 } as const
const BUSY = { min: 0, max: 600_000, default: BUSY_TIMEOUT_MS } as const
