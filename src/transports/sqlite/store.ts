import type { Clock } from '../../model/clock.ts'
import { closedError } from '../../model/closed-error.ts'
import type { Logger } from '../../model/logger.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import { asNumber, asRow, prepared, sqliteIdentity } from '../../sql/sqlite-handle.ts'
import { SET_SYNCHRONOUS, type Synchronous } from '../../sql/sqlite-open.ts'
import { nextTurn, whenFree, withWriteTransaction } from '../../sql/sqlite-write.ts'
import type { Bell } from '../../transport/bell.ts'
import { unknownQueueError } from '../../transport/own-errors.ts'
import { openDatabaseBell } from './bell.ts'
import { DATA_VERSION, FIND_QUEUE } from './statements.ts'

/** One connection with what every part of the transport needs: its clock, its locks, its wake-ups. */
export interface Store {
  readonly handle: SqliteHandle
  readonly identity: string | SqliteHandle
  readonly clock: Clock
  readonly logger: Logger
  /** By queue id. */
  readonly bell: Bell<number>
  /** Fires when the transport closes; everything that waits gives up. */
  readonly closing: AbortSignal
  /** Runs in one write transaction, as soon as the lock is free. */
  write<T>(work: () => T, options?: CallOptions): Promise<T>
  read<T>(work: () => T, options?: CallOptions): Promise<T>
  /** A read after which the event loop turns: whoever reads page by page, or one by one, must not stop it for all of them. */
  look<T>(work: () => T): Promise<T>
  /** Idempotent. Ends the waiting; the handle is closed when it is ours. */
  close(): void
}

export interface CallOptions {
  readonly signal?: AbortSignal
  readonly busyTimeoutMs?: number
  /**
   * False for what a power cut may undo: claims and leases, whose holders die with the machine. Saves the wait for the
   * disk; the next durable commit takes these along. Default true.
   */
  readonly durable?: boolean
}

export interface StoreOptions {
  readonly handle: SqliteHandle
  /** A handle in memory is shared with the user and stays open. */
  readonly shared: boolean
  readonly synchronous: Synchronous
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  readonly pollMs: number
  readonly busyTimeoutMs: number
}

export function openStore(options: StoreOptions): Store {
  const { handle, clock, random, logger } = options
  const identity = sqliteIdentity(handle)
  const closing = new AbortController()
  const { pollMs } = options
  const bell = openDatabaseBell({ identity, clock, pollMs, changed: watch(options) })

  const durably = durability(options)

  const call = <T>(
    run: typeof withWriteTransaction,
    work: () => T,
    given: CallOptions,
  ): Promise<T> => {
    if (closing.signal.aborted) return Promise.reject(closedError('the transport'))
    const { signal = closing.signal, busyTimeoutMs = options.busyTimeoutMs } = given
    const before = (): void => durably(given.durable ?? true)
    const whileOpen = { busyTimeoutMs, random, closing: closing.signal, before }
    return run(handle, clock, signal, work, whileOpen)
  }

  return {
    handle,
    identity,
    clock,
    logger,
    bell,
    closing: closing.signal,
    write: (work, given = {}) => call(withWriteTransaction, work, given),
    read: (work, given = {}) => call(whenFree, work, given),
    async look(work) {
      const value = await call(whenFree, work, {})
      await nextTurn()
      return value
    },
    close() {
      if (closing.signal.aborted) return
      closing.abort(closedError('the transport'))
      bell.close()
      if (!options.shared) handle.close()
    },
  }
}

/** Switches between waiting for the disk at a commit and not, where that was asked for and is possible. */
function durability({ handle, shared, synchronous }: StoreOptions): (durable: boolean) => void {
  if (shared || synchronous === 'normal') return () => {}
  let current: Synchronous = 'full'
  return (durable) => {
    const wanted = durable ? 'full' : 'normal'
    if (wanted !== current) handle.exec(SET_SYNCHRONOUS[wanted])
    current = wanted
  }
}

/**
 * Answers whether somebody else committed. SQLite counts the commits of other connections (pragma data_version); those
 * of a user who shares our handle are not among them, so a shared handle always says yes.
 */
function watch({ handle, shared }: StoreOptions): () => boolean {
  if (shared) return () => true
  let seen: unknown
  return () => {
    try {
      const version = asRow(prepared(handle, DATA_VERSION).get()).data_version
      const changed = version !== seen
      seen = version
      return changed
    } catch {
      // Locked for a moment (recovery of the WAL): look into the tables instead, where waiting is handled.
      return true
    }
  }
}

export interface QueueRow {
  readonly id: number
  readonly name: string
  readonly maxDepth: number | undefined
  readonly total: number
}

export function findQueue(handle: SqliteHandle, name: string): QueueRow | undefined {
  const found = prepared(handle, FIND_QUEUE).get(name)
  if (found === undefined) return undefined
  const row = asRow(found)
  const maxDepth = row.max_depth === null ? undefined : asNumber(row.max_depth)
  return { id: asNumber(row.id), name, maxDepth, total: asNumber(row.total) }
}

/** A transport is asked only for queues that were ensured. */
export function needQueue(handle: SqliteHandle, name: string): QueueRow {
  const queue = findQueue(handle, name)
  if (queue) return queue
  throw unknownQueueError(name)
}
