import type { Clock } from '../model/clock.ts'
import type { MaybePromise } from '../model/maybe-promise.ts'

/** A send that waits in a line for its turn. */
export interface LineWaiter {
  /** True when it has left the line, false when it must wait on. Never rejects. */
  tries(): Promise<boolean>
}

export interface LineWaiterOptions {
  readonly clock: Clock
  readonly waitMs: number
  /** What the try threw only says that its time has not come. */
  readonly isNotYet: (error: unknown) => boolean
  /** What it is told when its time is over. */
  readonly late: () => unknown
  /** Fires when the app closes: it gives up with `closedError`. */
  readonly closed: AbortSignal
  readonly closedError: () => unknown
  /** The caller's: it gives up with its reason. */
  readonly signal: AbortSignal | undefined
  /** Called once, before it is told. */
  readonly leave: () => void
}

/** What a try answers or throws is the result, unless it was not yet its time. */
export function lineWaiter<T>(
  attempt: () => MaybePromise<T>,
  options: LineWaiterOptions,
): { readonly waiter: LineWaiter; readonly ended: Promise<T> } {
  const { clock, waitMs, isNotYet, late, closed, closedError, signal, leave } = options
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  /** Why it gave up, the first reason first; told at the end of a try that is under way, which may still succeed. */
  const why: unknown[] = []
  let trying = false
  // At once, not when somebody hears of it: who has left must not try again.
  const end = (settle: () => void): void => {
    leave()
    settle()
  }
  const giveUp = (error: unknown): void => {
    why.push(error)
    if (!trying) end(() => reject(why[0]))
  }
  const abort = (): void => giveUp(signal?.reason)
  const close = (): void => giveUp(closedError())
  const cancel = clock.after(waitMs, () => giveUp(late()))
  signal?.addEventListener('abort', abort, { once: true })
  closed.addEventListener('abort', close, { once: true })

  const tries = async (): Promise<boolean> => {
    if (why.length > 0) return true
    trying = true
    try {
      const sent = await attempt()
      end(() => resolve(sent))
    } catch (error) {
      const notYet = isNotYet(error)
      if (notYet && why.length === 0) return false
      end(() => reject(notYet ? why[0] : error))
    } finally {
      trying = false
    }
    return true
  }
  const ended = promise.finally(() => {
    cancel()
    signal?.removeEventListener('abort', abort)
    closed.removeEventListener('abort', close)
  })
  return { waiter: { tries }, ended }
}
