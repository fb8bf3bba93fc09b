import type { Clock } from '../model/clock.ts'
import { closedError } from '../model/closed-error.ts'
import { MillraceError } from '../model/errors.ts'
import { limitSetting, UNREAD_MS, unreadLimit } from './pg-setting.ts'

/** How long one call to the server may take, connecting included, unless said otherwise. */
export const CALL_TIMEOUT_MS = 30_000

/**
 * A process that is stopped between two statements (SIGSTOP, a frozen machine, a network that swallows all) would keep what its
 * transaction has locked until the server misses it, two hours by default: keys that nobody can settle or send to. So the server
 * ends one of ours that stands idle for this long. Within one there is nothing but our own statements. A shorter limit of the user's
 * own stays.
 */
const IDLE_MS = 10_000

/** First in a transaction; for the rest of it. */
export const LIMIT_IDLE: string = `SELECT ${limitSetting('idle_in_transaction_session_timeout', `'${IDLE_MS}'`)},
  ${unreadLimit(`${UNREAD_MS}`)}`

export interface Limit {
  readonly clock: Clock
  readonly timeoutMs: number
  /** What the caller gets when time is up. Default: the server did not answer. */
  readonly late?: (timeoutMs: number) => Error
  /** Called when time is up or the call was ended, to free what the call holds. */
  readonly abandon?: () => void
  /** Ends the call at once, with the signal's reason. */
  readonly ended?: AbortSignal | undefined
  /** Ends it too, but a statement was sent by then, and what became of it nobody knows. */
  readonly cutOff?: AbortSignal | undefined
}

/**
 * Waits for a call no longer than its limit. A connection can die without a word (a firewall, a frozen server), and no
 * client notices that while it waits for an answer.
 */
export function limited<T>(
  call: PromiseLike<T>,
  { clock, timeoutMs, late = noAnswer, abandon, ended, cutOff }: Limit,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (error: unknown): void => {
      release()
      reject(error)
      abandon?.()
    }
    const onEnd = (): void => giveUp(ended?.reason)
    const onCut = (): void => giveUp(closedMeanwhile())
    const cancel = clock.after(timeoutMs, () => giveUp(late(timeoutMs)))
    const release = (): void => {
      cancel()
      ended?.removeEventListener('abort', onEnd)
      cutOff?.removeEventListener('abort', onCut)
    }
    call.then(
      (value) => {
        release()
        resolve(value)
      },
      (error: unknown) => {
        release()
        reject(error)
      },
    )
    if (ended?.aborted) onEnd()
    else ended?.addEventListener('abort', onEnd, { once: true })
    if (cutOff?.aborted) onCut()
    else cutOff?.addEventListener('abort', onCut, { once: true })
  })
}

function noAnswer(timeoutMs: number): MillraceError {
  return new MillraceError(
    'MILLRACE_UNAVAILABLE',
    `postgres did not answer within ${timeoutMs} ms; the connection was dropped, check the server and the network`,
    { retryable: true, fields: { timeoutMs } },
  )
}

/** Nobody can see from outside whether the server hangs or others keep what the pool has. */
export function noConnection(timeoutMs: number): MillraceError {
  return new MillraceError(
    'MILLRACE_UNAVAILABLE',
    `no connection to postgres came about, or came free in the pool, within ${timeoutMs} ms; check the server and the network, and ` +
      'whether transactions hold all of the pool while they wait for a call that is not part of them',
    { retryable: true, fields: { timeoutMs } },
  )
}

function closedMeanwhile(): MillraceError {
  return new MillraceError(
    'MILLRACE_UNAVAILABLE',
    'the connection to postgres was closed before it answered',
  )
}

export function poolClosed(): MillraceError {
  return closedError('the connection to postgres')
}
