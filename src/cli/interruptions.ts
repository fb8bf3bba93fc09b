import { onSignals } from '../runtime/signals.ts'
import type { CliIo } from './io.ts'

/** First signal: come to an end in good order. Second: at once. */
export interface Interruptions {
  readonly first: AbortSignal
  readonly second: AbortSignal
  /** Stops listening. */
  end(): void
}

/** Listens to SIGTERM, SIGINT and `io.signal` until `end` is called. */
export function interruptions(io: CliIo): Interruptions {
  const first = new AbortController()
  const second = new AbortController()
  const asked = (): void => first.abort()
  const stop = onSignals({ first: asked, second: () => second.abort() })
  if (io.signal.aborted) first.abort()
  io.signal.addEventListener('abort', asked, { once: true })
  return {
    first: first.signal,
    second: second.signal,
    end: () => {
      stop()
      io.signal.removeEventListener('abort', asked)
    },
  }
}

/** Resolves when the signal fires, at once when it has. */
export function fired(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
