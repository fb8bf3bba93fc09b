import type { Clock } from '../model/clock.ts'

export interface CallLimit {
  readonly clock: Clock
  readonly limitMs: number
  /** What the caller gets when time is up. */
  readonly late: () => Error
  /** Each ends the wait with its own reason. */
  readonly ends: readonly (AbortSignal | undefined)[]
}

/** Waits for a call of a client no longer than its limit; what comes of it afterwards is nobody's. */
export async function withinLimit<T>(
  call: Promise<T>,
  { clock, limitMs, late, ends }: CallLimit,
): Promise<T> {
  const limit = Promise.withResolvers<never>()
  const cancel = clock.after(limitMs, () => limit.reject(late()))
  const aborts = ends.map((end) => {
    const abort = (): void => limit.reject(end?.reason)
    if (end?.aborted) abort()
    else end?.addEventListener('abort', abort, { once: true })
    return () => end?.removeEventListener('abort', abort)
  })
  try {
    return await Promise.race([call, limit.promise])
  } finally {
    cancel()
    for (const forget of aborts) forget()
    call.catch(() => {})
  }
}
