import { closedError } from '../model/closed-error.ts'
import { newId } from '../model/ids.ts'
import { problems } from '../model/problems.ts'
import type { SqliteHandle } from '../sql/executor.ts'
import { asNumber, asRow, prepared, sqliteIdentity } from '../sql/sqlite-handle.ts'
import {
  checkSynchronous,
  locationProblems,
  openLocation,
  refuseMissing,
  refuseReadOnlyHandle,
} from '../sql/sqlite-location.ts'
import { migrateSqlite, printSqliteMigrations, sqliteDatabaseId } from '../sql/sqlite-migrate.ts'
import { whenFree, withWriteTransaction } from '../sql/sqlite-write.ts'
import { handOver } from './handover.ts'
import { listeners } from './listeners.ts'
import type { Outbox, OutboxConnector, OutboxContext, Publish, RelayPass } from './outbox.ts'
import { addsIn } from './sqlite-add.ts'
import { CLAIM_MS, claim, conclude, firstKey, renew } from './sqlite-claim.ts'
import { sqliteOutboxSchema } from './sqlite-schema.ts'
import { HAS_ROWS, LAG } from './sqlite-statements.ts'
import { sqliteStuck } from './sqlite-stuck.ts'

export type SqliteOutboxOptions = SqliteOutboxSettings &
  (
    | {
        /** Path of the database file that your transactions are in; its folder must exist. */
        readonly file: string
        readonly db?: never
      }
    | {
        /** Your own handle: node:sqlite's DatabaseSync or better-sqlite3's Database. */
        readonly db: SqliteHandle
        readonly file?: never
      }
  )

export interface SqliteOutboxSettings {
  /** What a power cut may lose: `full` nothing, `normal` the last moments. Default `full`. Not applied to `db`. */
  readonly synchronous?: 'full' | 'normal'
}

/**
 * Messages that are sent inside transactions of your SQLite database, for a transport that is somewhere else.
 *
 * @example
 * const app = await createMillrace({ transport: postgres({ url }), queues, outbox: sqliteOutbox({ db }) })
 * db.exec('BEGIN IMMEDIATE')
 * app.send(queue, payload, { tx: db })
 * db.exec('COMMIT')
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function sqliteOutbox(options: SqliteOutboxOptions): OutboxConnector {
  const found = problems('sqliteOutbox')
  found.knownKeys(options, KNOWN)
  const { file, db, synchronous = 'full' } = options
  for (const problem of locationProblems(options)) found.add(problem)
  checkSynchronous(synchronous, found)
  found.throwIfAny()
  const location = db === undefined ? { file: file ?? '' } : { db }
  return {
    name: NAME,
    migrationSql: () => printSqliteMigrations(sqliteOutboxSchema),
    connect: async (context) => {
      if (context.migrate === 'check') refuseMissing('sqliteOutbox', location)
      const { handle, shared, problems } = await openLocation('sqliteOutbox', location, {
        ...context,
        synchronous,
      })
      try {
        await migrateSqlite(handle, sqliteOutboxSchema, context)
        refuseReadOnlyHandle('sqliteOutbox', location)
        return { ...outbox(handle, shared, context), problems }
      } catch (error) {
        if (!shared) handle.close()
        throw error
      }
    },
  }
}

const NAME = 'sqlite'
const KNOWN: readonly string[] = ['file', 'db', 'synchronous']

function outbox(handle: SqliteHandle, shared: boolean, context: OutboxContext): Outbox {
  const { clock, random } = context
  const closed = new AbortController()
  const closing = closed.signal
  const { onAdded, tell } = listeners()
  let cursor = firstKey

  const call = async <T>(run: typeof whenFree, work: () => T): Promise<T> => {
    if (closing.aborted) throw closedError('the outbox')
    return await run(handle, clock, closing, work, { random })
  }
  const read = <T>(work: () => T): Promise<T> => call(whenFree, work)
  const write = <T>(work: () => T): Promise<T> => call(withWriteTransaction, work)

  const relay = async (max: number, publish: Publish): Promise<RelayPass> => {
    if (!(await read(() => prepared(handle, HAS_ROWS).get() !== undefined))) return nothing
    const name = newId(clock, random)
    const claimed = await write(() => claim(handle, clock.now(), { name, max, cursor }))
    cursor = claimed.cursor
    if (claimed.rows.length === 0) return nothing
    const stop = keepRenewing(name)
    const handover = await handOver(claimed.rows, publish).finally(stop)
    const failed = await write(() => conclude(handle, clock.now(), name, handover, random))
    return { taken: claimed.rows.length, published: handover.confirmed.length, failed }
  }

  /** A slow transport is no dead relay. A renewal that fails costs at most a second sending, with the same id. */
  const keepRenewing = (name: string): (() => void) => {
    let cancel = (): void => undefined
    const arm = (): void => {
      cancel = clock.after(CLAIM_MS / 3, () => {
        arm()
        write(() => renew(handle, clock.now(), name)).catch(() => undefined)
      })
    }
    arm()
    return () => cancel()
  }

  return {
    name: NAME,
    databaseId: sqliteDatabaseId(handle),
    // A synchronous transaction has usually committed once the event loop turns.
    transaction: (tx) =>
      addsIn(
        { identity: sqliteIdentity(handle), clock, added: () => void clock.after(0, tell) },
        tx,
      ),
    relay,
    stuck: sqliteStuck({ handle, now: () => clock.now(), read, write }),
    lag: async () => {
      const row = asRow(await read(() => prepared(handle, LAG).get()))
      const rows = asNumber(row.n)
      return { rows, ageMs: rows === 0 ? 0 : Math.max(0, clock.now() - asNumber(row.oldest)) }
    },
    onAdded,
    close: async () => {
      if (closing.aborted) return
      closed.abort(closedError('the outbox'))
      if (!shared) handle.close()
    },
  }
}

const nothing: RelayPass = { taken: 0, published: 0, failed: [] }
