import type { ReceiveOptions } from '../transport/transport.ts'

/** Ends receives of the transport below early, because there is something to hand out above it. */
export interface Wakeable {
  wake(): void
  /** Runs a receive with a signal that also fires on `wake`; one that waits for nothing keeps its own, as a new one costs. */
  during<T>(options: ReceiveOptions, run: (signal: AbortSignal) => Promise<T>): Promise<T>
}

export function wakeable(): Wakeable {
  const waiting = new Set<AbortController>()
  return {
    wake() {
      for (const controller of waiting) controller.abort()
    },
    async during({ waitMs, signal }, run) {
      if (waitMs <= 0) return run(signal)
      const controller = new AbortController()
      waiting.add(controller)
      try {
        return await run(AbortSignal.any([signal, controller.signal]))
      } finally {
        waiting.delete(controller)
      }
    },
  }
}
