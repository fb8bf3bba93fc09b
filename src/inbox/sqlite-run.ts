import type { Clock } from '../model/clock.ts'
import { MillraceError } from '../model/errors.ts'
import { isPromise } from '../model/maybe-promise.ts'
import type { SqliteHandle } from '../sql/executor.ts'
import { clearError } from '../sql/sqlite-fault.ts'
import { asNumber, asRow, inTransaction, prepared } from '../sql/sqlite-handle.ts'
import { BUSY_TIMEOUT_MS, nextTurn, whenFree } from '../sql/sqlite-write.ts'
import { asyncEffectRefused } from './async-effect.ts'
import type { InboxKey, InboxOutcome, InboxWork } from './inbox.ts'
import { storedKey } from './key.ts'
import {
  BEGIN,
  BEGIN_AT_ONCE,
  COMMIT,
  READ_BUSY_TIMEOUT,
  RECORD,
  RELEASE,
  ROLLBACK,
  SAVEPOINT,
} from './sqlite-statements.ts'
import type { MayBegin } from './sqlite-turns.ts'

export interface SqliteRunContext<Tx extends SqliteHandle> {
  /** The handle that the effect gets. */
  readonly handle: Tx
  /** The handle is ours, with nobody's settings on it. */
  readonly ours: boolean
  readonly clock: Clock
  readonly random: () => number
  readonly ttlMs: number
  /** Fires when the inbox closes. */
  readonly closing: AbortSignal
  readonly mayBegin: MayBegin
}

type Ended<T> =
  | { readonly ok: true; readonly outcome: InboxOutcome<T> }
  | { readonly ok: false; readonly error: unknown }

/**
 * Waits for the write lock, and for a transaction that the user has open on the handle, without blocking the event
 * loop. Then everything happens in one go, so two runs on one handle never interleave.
 */
export async function runOnSqlite<Tx extends SqliteHandle, T>(
  context: SqliteRunContext<Tx>,
  key: InboxKey,
  work: InboxWork<Tx, T>,
): Promise<InboxOutcome<T>> {
  const { handle, clock, random, closing, mayBegin } = context
  while (!mayBegin()) await nextTurn()
  const busyTimeoutMs = Math.min(work.leaseMs, BUSY_TIMEOUT_MS)
  const ended = await whenFree(handle, clock, closing, () => transact(context, key, work), {
    busyTimeoutMs,
    random,
  })
  if (ended.ok) return ended.outcome
  throw ended.error
}

/** Only a lock that was not free at the start is thrown: once the effect was called nothing is tried again. */
function transact<Tx extends SqliteHandle, T>(
  context: SqliteRunContext<Tx>,
  key: InboxKey,
  work: InboxWork<Tx, T>,
): Ended<T> {
  if (work.isOver?.()) return { ok: true, outcome: { kind: 'lost' } }
  const { handle, ours } = context
  if (ours) handle.exec(BEGIN_AT_ONCE)
  else beginAtOnce(handle)
  try {
    prepared(handle, SAVEPOINT).run()
    const called = call(work.effect, handle)
    if (!called.ok) return undone(handle, called)
    const outcome = finish(context, key, work, called.value)
    if (outcome.kind !== 'committed') return undone(handle, { ok: true, outcome })
    handle.exec(COMMIT)
    return { ok: true, outcome }
  } catch (error) {
    return undone(handle, { ok: false, error: clearError(error) })
  }
}

/** The user's handle may have a busy timeout of its own, which would block the whole process in BEGIN. */
function beginAtOnce(handle: SqliteHandle): void {
  const timeoutMs = asNumber(asRow(handle.prepare(READ_BUSY_TIMEOUT).get()).timeout)
  if (timeoutMs === 0) return void handle.exec(BEGIN)
  handle.exec(`${READ_BUSY_TIMEOUT} = 0`)
  try {
    handle.exec(BEGIN)
  } finally {
    handle.exec(`${READ_BUSY_TIMEOUT} = ${timeoutMs}`)
  }
}

type Called<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: unknown }

/** What the effect throws is the user's, and stays as it is. */
function call<Tx, T>(effect: InboxWork<Tx, T>['effect'], tx: Tx): Called<T> {
  try {
    const value = effect(tx)
    if (!isPromise(value)) return { ok: true, value }
    value.catch(() => undefined)
    return { ok: false, error: asyncEffectRefused() }
  } catch (error) {
    return { ok: false, error }
  }
}

function finish<Tx extends SqliteHandle, T>(
  { handle, clock, ttlMs }: SqliteRunContext<Tx>,
  key: InboxKey,
  work: InboxWork<Tx, T>,
  value: T,
): InboxOutcome<T> {
  releaseSavepoint(handle)
  const now = clock.now()
  const { changes } = prepared(handle, RECORD).run(key.queue, storedKey(key.key), now, now + ttlMs)
  if (Number(changes) === 0) return { kind: 'duplicate' }
  const held = work.last(handle)
  if (isPromise(held)) {
    held.catch(() => undefined)
    throw new MillraceError(
      'MILLRACE_BACKEND_FAULT',
      `queue "${key.queue}": the ack inside a SQLite transaction must happen at once; nothing was committed`,
    )
  }
  return held ? { kind: 'committed', value } : { kind: 'lost' }
}

/** The savepoint is gone when the effect ended our transaction, even if it began another one. */
function releaseSavepoint(handle: SqliteHandle): void {
  try {
    prepared(handle, RELEASE).run()
  } catch (cause) {
    throw new MillraceError(
      'MILLRACE_FOREIGN_TRANSACTION',
      'the function given to ctx.tx ended the transaction itself (COMMIT or ROLLBACK), so its key could not be recorded ' +
        'with it; leave the transaction open, it is committed when the function returns',
      { cause },
    )
  }
}

/** SQLite itself rolls back on some errors (a full disk), and then there is nothing left to do. */
function undone<E>(handle: SqliteHandle, ended: E): E {
  if (inTransaction(handle)) handle.exec(ROLLBACK)
  return ended
}
