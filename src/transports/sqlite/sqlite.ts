import { OptionsError } from '../../model/errors.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import { isOpenHandle, isSqliteHandle, sqliteIdentity } from '../../sql/sqlite-handle.ts'
import { migrateSqlite, sqliteDatabaseId } from '../../sql/sqlite-migrate.ts'
import { openBeside, openSqlite, type Synchronous } from '../../sql/sqlite-open.ts'
import { BUSY_TIMEOUT_MS } from '../../sql/sqlite-write.ts'
import type { ConnectContext, Connector, Transport } from '../../transport/transport.ts'
import { queueSchema } from './schema.ts'
import { openStore } from './store.ts'
import { sqliteTraits } from './traits.ts'
import { sqliteTransport } from './transport.ts'

export type SqliteOptions = SqliteSettings &
  (
    | {
        /** Path of the database file, made when missing; its folder must exist. `:memory:` for none. */
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
  /** How long to wait for another writer's lock, in ms; 0 to 600,000. Default 30,000. */
  readonly busyTimeoutMs?: number
}

type Resolved = Required<SqliteSettings> &
  (
    | { readonly file: string; readonly db: undefined }
    | { readonly file?: never; readonly db: SqliteHandle }
  )

/**
 * Queues in one SQLite file, shared by any number of processes on one machine.
 *
 * @example
 * const app = await createMillrace({ transport: sqlite({ file: 'millrace.db' }), queues: [deliveries] })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function sqlite(options: SqliteOptions): Connector {
  const resolved = resolve(options)
  return { name: 'sqlite', connect: (context) => connect(resolved, context) }
}

async function connect(options: Resolved, context: ConnectContext): Promise<Transport> {
  const { clock, signal, random, logger, migrate } = context
  const { pollMs, busyTimeoutMs } = options
  signal.throwIfAborted()
  const { handle, shared } = await openHandle(options, context)
  try {
    await migrateSqlite(handle, queueSchema, { clock, signal, migrate, random })
    const databaseId = sqliteDatabaseId(handle)
    const store = openStore({ handle, shared, clock, random, logger, pollMs, busyTimeoutMs })
    return sqliteTransport(store, sqliteTraits(shared ? 'process' : 'disk'), databaseId)
  } catch (error) {
    if (!shared) handle.close()
    throw error
  }
}

interface OpenedHandle {
  readonly handle: SqliteHandle
  readonly shared: boolean
}

/** Our own connection wherever there is a file: the user's handle may be in the middle of a transaction at any time. */
async function openHandle(options: Resolved, context: ConnectContext): Promise<OpenedHandle> {
  const { file, db, synchronous } = options
  const { clock, signal } = context
  if (db === undefined) {
    return { handle: await openSqlite(file, { clock, signal, synchronous }), shared: false }
  }
  if (!isOpenHandle(db))
    throw new OptionsError('sqlite', ['expected an open handle for db, it is closed'])
  const identity = sqliteIdentity(db)
  if (typeof identity !== 'string') return { handle: db, shared: true }
  return { handle: await openBeside(db, identity, { clock, signal, synchronous }), shared: false }
}

const KNOWN: readonly string[] = ['file', 'db', 'synchronous', 'pollMs', 'busyTimeoutMs']

function resolve(options: SqliteOptions): Resolved {
  const { file, db, synchronous = 'full', pollMs = 25, busyTimeoutMs = BUSY_TIMEOUT_MS } = options
  const problems = [
    ...Object.keys(options)
      .filter((key) => !KNOWN.includes(key))
      .map((key) => `unknown option "${key}", expected one of ${KNOWN.join(', ')}`),
    ...locationProblems(file, db),
    ...(synchronous === 'full' || synchronous === 'normal'
      ? []
      : [`expected 'full' or 'normal' for synchronous, got ${String(synchronous)}`]),
    ...rangeProblems('pollMs', pollMs, 1, 60_000),
    ...rangeProblems('busyTimeoutMs', busyTimeoutMs, 0, 600_000),
  ]
  if (problems.length > 0) throw new OptionsError('sqlite', problems)
  const settings = { synchronous, pollMs, busyTimeoutMs }
  return Object.freeze(
    db === undefined ? { ...settings, file: file ?? '', db } : { ...settings, db },
  )
}

function locationProblems(file: unknown, db: unknown): readonly string[] {
  if ((file === undefined) === (db === undefined)) return ['expected either file or db']
  if (db !== undefined) {
    return isSqliteHandle(db)
      ? []
      : ['expected a DatabaseSync of node:sqlite or a Database of better-sqlite3 for db']
  }
  if (typeof file !== 'string' || file === '') return ['expected a path for file']
  if (file === ':memory:') {
    return [
      'file ":memory:" would be another database for every connection; pass a handle as db, or use memory()',
    ]
  }
  return file.startsWith('file:') ? [`expected a path for file, got the URI "${file}"`] : []
}

function rangeProblems(name: string, value: unknown, min: number, max: number): readonly string[] {
  const fits = typeof value === 'number' && value >= min && value <= max
  return fits ? [] : [`expected ${min} to ${max} for ${name}, got ${String(value)}`]
}
