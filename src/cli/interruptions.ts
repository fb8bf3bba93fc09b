import { systemClock } from '../model/clock.ts'
import type { CliIo } from './io.ts'

/** First signal: come to an end in good order. Second: at once. */
export interface Interruptions {
  readonly first: AbortSignal
  readonly second: AbortSignal
  /** Stops listening. */
  end(): void
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** Under npm one Ctrl-C arrives twice, from the terminal and handed on by npm; nobody presses it that fast. */
const SAME_SIGNAL_MS = 100

/** Listens to SIGTERM, SIGINT and `io.signal` until `end` is called. */
export function interruptions(io: CliIo): Interruptions {
  const first = new AbortController()
  const second = new AbortController()
  const clock = systemClock()
  let firstAt: number | undefined
  const listener = (): void => {
    firstAt ??= clock.now()
    first.abort()
    if (clock.now() - firstAt > SAME_SIGNAL_MS) second.abort()
  }
  const asked = (): void => first.abort()
  for (const signal of SIGNALS) process.on(signal, listener)
  if (io.signal.aborted) first.abort()
  io.signal.addEventListener('abort', asked, { once: true })
  return {
    first: first.signal,
    second: second.signal,
    end: () => {
      for (const signal of SIGNALS) process.off(signal, listener)
      io.signal.removeEventListener('abort', asked)
    },
  }
}

/** Resolves when the signal fires, at once when it has. */
export function fired(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
