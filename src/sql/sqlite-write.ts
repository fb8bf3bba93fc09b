import { type Clock, pause } from '../model/clock.ts'
import { MillraceError } from '../model/errors.ts'
import type { SqliteHandle } from './executor.ts'
import { clearError, isBusy } from './sqlite-fault.ts'
import { inTransaction } from './sqlite-handle.ts'
import { waitBegins } from './sqlite-waits.ts'

export interface WriteOptions {
  /** How long to wait for the write lock, in ms. Default 30,000. */
  readonly busyTimeoutMs?: number
  /** 0 <= n < 1, for the jitter between two tries. */
  readonly random?: () => number
  /** A second reason to stop waiting. */
  readonly closing?: AbortSignal
  /** Runs before each BEGIN, for settings that cannot change within a transaction. */
  readonly before?: () => void
}

export const BUSY_TIMEOUT_MS = 30_000
/** While a connector opens. Less than the 30 s that opening may take, so that the reason is told and not its symptom. */
const OPENING_BUSY_MAX_MS = 20_000

export function openingBusyMs({ busyTimeoutMs = OPENING_BUSY_MAX_MS }: WriteOptions): number {
  return Math.min(busyTimeoutMs, OPENING_BUSY_MAX_MS)
}

const PAUSE_MIN_MS = 1
const PAUSE_MAX_MS = 25

const BEGIN = 'BEGIN IMMEDIATE'
const COMMIT = 'COMMIT'
const ROLLBACK = 'ROLLBACK'

/**
 * Runs `work` in one write transaction. Waits for the write lock, and for a transaction that somebody else has open on
 * this handle, without blocking the event loop; `work` itself is synchronous, so nothing of ours is ever in between.
 * An error rolls everything back and is thrown; a full disk as MILLRACE_DISK_FULL.
 * @throws MILLRACE_UNAVAILABLE after `busyTimeoutMs`; the signal's reason when it fires while waiting.
 */
export async function withWriteTransaction<T>(
  handle: SqliteHandle,
  clock: Clock,
  signal: AbortSignal,
  work: () => T,
  options: WriteOptions = {},
): Promise<T> {
  const run = (): T => {
    options.before?.()
    return writeNow(handle, work)
  }
  const value = await whenFree(handle, clock, signal, run, options)
  await nextTurn()
  return value
}

let turn: Promise<void> | undefined

/**
 * Lets timers and sockets have their turn. SQLite answers at once, so a worker's chain of receive and settle would
 * otherwise run in microtasks only: a drain of 50,000 messages was measured to hold up every timer for 1.9 s.
 */
export function nextTurn(): Promise<void> {
  turn ??= new Promise((resolve) => {
    setImmediate(() => {
      turn = undefined
      resolve()
    })
  })
  return turn
}

/** Runs `read` as soon as no lock is in its way: even a read meets one while another process recovers the WAL. */
export async function whenFree<T>(
  handle: SqliteHandle,
  clock: Clock,
  signal: AbortSignal,
  run: () => T,
  options: WriteOptions = {},
): Promise<T> {
  signal.throwIfAborted()
  const first = attempt(handle, run)
  if (first.free) return first.value
  const ends = waitBegins(handle, clock.now())
  try {
    return await retry(handle, clock, signal, run, options)
  } finally {
    ends()
  }
}

async function retry<T>(
  handle: SqliteHandle,
  clock: Clock,
  signal: AbortSignal,
  run: () => T,
  options: WriteOptions,
): Promise<T> {
  const { busyTimeoutMs = BUSY_TIMEOUT_MS, random = jitter, closing } = options
  const ends = closing ? AbortSignal.any([signal, closing]) : signal
  const endAt = clock.now() + busyTimeoutMs
  for (;;) {
    const leftMs = endAt - clock.now()
    if (leftMs <= 0) throw stillLocked(busyTimeoutMs)
    const pauseMs = PAUSE_MIN_MS + random() * (PAUSE_MAX_MS - PAUSE_MIN_MS)
    await pause(clock, Math.min(leftMs, pauseMs), ends)
    ends.throwIfAborted()
    const outcome = attempt(handle, run)
    if (outcome.free) return outcome.value
  }
}

type Outcome<T> = { readonly free: true; readonly value: T } | { readonly free: false }

function attempt<T>(handle: SqliteHandle, run: () => T): Outcome<T> {
  // A transaction on the handle that is not ours (a shared handle in memory) must not swallow our statements.
  if (inTransaction(handle)) return { free: false }
  try {
    return { free: true, value: run() }
  } catch (error) {
    if (isBusy(error)) return { free: false }
    throw clearError(error)
  }
}

function writeNow<T>(handle: SqliteHandle, work: () => T): T {
  handle.exec(BEGIN)
  try {
    const value = work()
    handle.exec(COMMIT)
    return value
  } catch (error) {
    // SQLite itself rolls back on some errors (a full disk), and then there is nothing left to do.
    if (inTransaction(handle)) handle.exec(ROLLBACK)
    throw error
  }
}

function stillLocked(busyTimeoutMs: number): MillraceError {
  return new MillraceError(
    'MILLRACE_UNAVAILABLE',
    `the SQLite database stayed locked for ${busyTimeoutMs} ms by another writer; nothing was stored, ` +
      'look for a transaction that somebody left open, then try again',
    { retryable: true, fields: { busyTimeoutMs } },
  )
}

let state = (process.pid * 2_654_435_761) >>> 0

/** Only spreads retries of several processes; seeded by the process id so that they differ. */
function jitter(): number {
  state ^= state << 13
  state ^= state >>> 17
  state ^= state << 5
  return (state >>> 0) / 2 ** 32
}
