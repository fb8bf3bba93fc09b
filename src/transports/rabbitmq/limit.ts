import type { Clock } from '../../model/clock.ts'
import { MillraceError } from '../../model/errors.ts'
import type { Broker } from './broker.ts'

/** Waits for a call of the client no longer than its limit. */
export async function withinLimit<T>(
  { clock, options, closing }: Pick<Broker, 'clock' | 'options' | 'closing'>,
  what: string,
  call: Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const limit = Promise.withResolvers<never>()
  const cancel = clock.after(options.timeoutMs, () => {
    const message = `rabbitmq: ${what} took longer than ${options.timeoutMs} ms`
    limit.reject(new MillraceError('MILLRACE_UNAVAILABLE', message, { retryable: true }))
  })
  const ends = signal === undefined ? [closing] : [closing, signal]
  const aborts = ends.map((end) => {
    const abort = (): void => limit.reject(end.reason)
    if (end.aborted) abort()
    else end.addEventListener('abort', abort, { once: true })
    return () => end.removeEventListener('abort', abort)
  })
  try {
    return await Promise.race([call, limit.promise])
  } finally {
    cancel()
    for (const forget of aborts) forget()
    call.catch(() => {})
  }
}

/** Whether a call ended within a time, well or not; leaves no timer behind. */
export async function endsWithin(
  clock: Clock,
  ms: number,
  call: Promise<unknown>,
): Promise<boolean> {
  const late = Promise.withResolvers<boolean>()
  const cancel = clock.after(ms, () => late.resolve(false))
  const ended = call.then(
    () => true,
    () => true,
  )
  try {
    return await Promise.race([ended, late.promise])
  } finally {
    cancel()
  }
}
