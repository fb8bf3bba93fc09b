import type { Clock } from '../../model/clock.ts'
import { MillraceError } from '../../model/errors.ts'
import { withinLimit as limited } from '../../transport/within-limit.ts'
import type { Broker } from './broker.ts'

/** Waits for a call of the client no longer than its limit. */
export function withinLimit<T>(
  { clock, options, closing }: Pick<Broker, 'clock' | 'options' | 'closing'>,
  what: string,
  call: Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const { timeoutMs: limitMs } = options
  const message = `rabbitmq: ${what} took longer than ${limitMs} ms`
  const late = (): Error => new MillraceError('MILLRACE_UNAVAILABLE', message, { retryable: true })
  return limited(call, { clock, limitMs, late, ends: [closing, signal] })
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
