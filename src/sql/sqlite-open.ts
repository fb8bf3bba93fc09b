import { accessSync, constants, existsSync, statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Clock } from '../model/clock.ts'
import { MillraceError } from '../model/errors.ts'
import type { SqliteHandle } from './executor.ts'
import { isBusy, isNoDatabase } from './sqlite-fault.ts'
import { asRow, isSqliteHandle, sqliteIdentity } from './sqlite-handle.ts'
import { openingBusyMs, whenFree } from './sqlite-write.ts'

/** `full`: a commit is on the disk when it returns. `normal`: a power cut may take back the last commits. */
export type Synchronous = 'full' | 'normal'

export interface OpenContext {
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly synchronous: Synchronous
  /** How long to wait for another writer, in ms. Default and most 20,000. */
  readonly busyTimeoutMs?: number
}

/** Opens a file through node:sqlite, in WAL mode, and reads every setting back. `:memory:` is allowed. */
export async function openSqlite(file: string, context: OpenContext): Promise<SqliteHandle> {
  const path = file === ':memory:' ? file : resolve(file)
  const { DatabaseSync } = nodeSqlite()
  return await settle(() => new DatabaseSync(path, { timeout: 0 }), path, context)
}

/** Opens a second connection to the file of this handle, through the same library (see `sqliteIdentity`). */
export async function openBeside(
  handle: SqliteHandle,
  file: string,
  context: OpenContext,
): Promise<SqliteHandle> {
  return await settle(() => sibling(handle, file), file, context)
}

function sibling(handle: SqliteHandle, file: string): SqliteHandle {
  const made: unknown = Reflect.construct(handle.constructor, [file, { timeout: 0 }])
  if (isSqliteHandle(made)) return made
  throw new MillraceError(
    'MILLRACE_INVALID_OPTIONS',
    `could not open a second connection to ${file} through the class of the given handle; pass { file } instead of { db }`,
  )
}

async function settle(
  open: () => SqliteHandle,
  file: string,
  context: OpenContext,
): Promise<SqliteHandle> {
  if (file !== ':memory:') {
    refuseShare(file)
    refuseReadOnly(file)
  }
  const handle = opened(open, file)
  try {
    sqliteIdentity(handle)
    const { clock, signal } = context
    const wait = { busyTimeoutMs: openingBusyMs(context) }
    await whenFree(handle, clock, signal, () => apply(handle, file, context), wait)
    return handle
  } catch (error) {
    handle.close()
    throw error
  }
}

function opened(open: () => SqliteHandle, file: string): SqliteHandle {
  try {
    return open()
  } catch (error) {
    if (isBusy(error)) throw error
    throw refused(
      file,
      'it could not be opened; check that its folder exists and may be written to',
      error,
    )
  }
}

const SET_BUSY_TIMEOUT = 'PRAGMA busy_timeout = 0'
const SET_WAL = 'PRAGMA journal_mode = WAL'
const READ_SYNCHRONOUS = 'PRAGMA synchronous'
/** Changes how durable the next commits are; not within a transaction. */
export const SET_SYNCHRONOUS: Readonly<Record<Synchronous, string>> = {
  full: 'PRAGMA synchronous = FULL',
  normal: 'PRAGMA synchronous = NORMAL',
}
const SYNCHRONOUS_LEVEL: Readonly<Record<Synchronous, number>> = {
  full: 2,
  normal: 1,
}
/** A WAL that a burst has grown is cut back to this size by the next checkpoint. */
const SET_WAL_LIMIT = 'PRAGMA journal_size_limit = 67108864'

function apply(handle: SqliteHandle, file: string, { synchronous }: OpenContext): void {
  handle.prepare(SET_BUSY_TIMEOUT).all()
  if (file === ':memory:') return
  const mode = journalMode(handle, file)
  if (mode !== 'wal') {
    throw refused(
      file,
      `WAL is not available, journal_mode stayed "${mode}"; put the file on a local disk`,
    )
  }
  handle.exec(SET_SYNCHRONOUS[synchronous])
  const level = asRow(handle.prepare(READ_SYNCHRONOUS).get()).synchronous
  if (Number(level) !== SYNCHRONOUS_LEVEL[synchronous]) {
    throw refused(file, `synchronous=${synchronous} did not take effect, it is ${level}`)
  }
  handle.prepare(SET_WAL_LIMIT).all()
}

function journalMode(handle: SqliteHandle, file: string): string {
  try {
    return String(asRow(handle.prepare(SET_WAL).get()).journal_mode)
  } catch (error) {
    if (isBusy(error)) throw error
    if (isNoDatabase(error)) {
      throw new MillraceError(
        'MILLRACE_INVALID_OPTIONS',
        `SQLite file ${file} is not a SQLite database (or it is encrypted); check the name`,
        { cause: error, fields: { file } },
      )
    }
    throw refused(
      file,
      'WAL could not be switched on; the file and its folder must be writable, on a local disk',
      error,
    )
  }
}

function refused(file: string, why: string, cause?: unknown): MillraceError {
  const because = cause instanceof Error ? ` (${cause.message})` : ''
  return new MillraceError('MILLRACE_DENIED', `SQLite file ${file}: ${why}${because}`, {
    cause,
    fields: { file },
  })
}

/** File systems whose locks do not reach other hosts, by their magic number (Linux, statfs(2)). */
const SHARES: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x5346414f, 'AFS'],
  [0x00c36400, 'Ceph'],
])

function refuseShare(file: string): void {
  const share = SHARES.get(fileSystem(dirname(file)))
  if (share === undefined) return
  throw refused(
    file,
    `it lies on a network share (${share}), where SQLite's locks do not hold; use a local disk, or Postgres`,
  )
}

/** SQLite opens what it may only read, and says so at the first write. Asked by name: opening it would drop its locks. */
function refuseReadOnly(file: string): void {
  if (!existsSync(file)) return
  try {
    accessSync(file, constants.W_OK)
  } catch (cause) {
    throw refused(
      file,
      'the file and its folder must be writable; give this account the right (chmod, chown), or put the file elsewhere',
      cause,
    )
  }
}

function fileSystem(folder: string): number {
  try {
    return statfsSync(folder).type >>> 0
  } catch {
    // A folder that does not exist is reported by the opening itself.
    return 0
  }
}

type NodeSqlite = typeof import('node:sqlite')

/** Node 22 warns that node:sqlite is experimental; only that one warning, raised by this very call, is left out. */
function nodeSqlite(): NodeSqlite {
  const { emitWarning } = process
  process.emitWarning = ((warning: string | Error, ...rest: never[]) => {
    const text = typeof warning === 'string' ? warning : warning.message
    if (!text.startsWith('SQLite is an experimental feature')) emitWarning(warning, ...rest)
  }) satisfies typeof process.emitWarning
  try {
    return process.getBuiltinModule('node:sqlite')
  } finally {
    process.emitWarning = emitWarning
  }
}
