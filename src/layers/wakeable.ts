import type { Delivery } from '../model/delivery.ts'
import type { ReceiveOptions } from '../transport/transport.ts'

type Came = readonly Delivery[]

export interface Woken {
  readonly came: Came
  /** Whether `wake` ended it. */
  readonly isWoken: boolean
}

/** Ends receives of the transport below early, because there is something to hand out above it. */
export interface Wakeable {
  wake(): void
  /** Runs a receive with a signal that also fires on `wake`; one that waits for nothing keeps its own, as a new one costs. */
  during(options: ReceiveOptions, receive: (signal: AbortSignal) => Promise<Came>): Promise<Woken>
}

export function wakeable(): Wakeable {
  const waiting = new Set<AbortController>()
  return {
    wake() {
      for (const controller of waiting) controller.abort()
    },
    async during({ waitMs, signal }, receive) {
      if (waitMs <= 0) return { came: await receive(signal), isWoken: false }
      const controller = new AbortController()
      waiting.add(controller)
      try {
        const came = await receive(AbortSignal.any([signal, controller.signal]))
        return { came, isWoken: controller.signal.aborted }
      } finally {
        waiting.delete(controller)
      }
    },
  }
}
