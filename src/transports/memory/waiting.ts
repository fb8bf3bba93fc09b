import type { Cancel, Clock } from '../../model/clock.ts'
import type { Delivery } from '../../model/delivery.ts'
import type { MemoryQueue } from './queue.ts'

export interface Wait {
  readonly queue: MemoryQueue
  readonly clock: Clock
  readonly waitMs: number
  /** Any of them ends the wait. (AbortSignal.any costs more than all the rest of a wait.) */
  readonly signals: readonly AbortSignal[]
  readonly claim: () => readonly Delivery[]
}

/**
 * Claims as soon as there is something; empty after `waitMs` or on abort. One timer, no polling.
 */
export function waitFor(wait: Wait): Promise<readonly Delivery[]> {
  const { queue, clock, signals, claim } = wait
  const endAt = clock.now() + wait.waitMs
  return new Promise((resolve) => {
    let cancelTimer: Cancel | undefined
    let armedFor: number | undefined

    const finish = (deliveries: readonly Delivery[]): void => {
      cancelTimer?.()
      queue.waiting.delete(attempt)
      for (const signal of signals) signal.removeEventListener('abort', abort)
      resolve(deliveries)
    }
    const abort = (): void => finish([])
    const attempt = (): void => {
      const deliveries = claim()
      if (deliveries.length > 0 || clock.now() >= endAt) finish(deliveries)
      else arm(Math.min(endAt, queue.nextDueAt() ?? endAt))
    }
    const arm = (dueAt: number): void => {
      if (dueAt === armedFor) return
      cancelTimer?.()
      armedFor = dueAt
      cancelTimer = clock.after(dueAt - clock.now(), () => {
        armedFor = undefined
        attempt()
      })
    }

    queue.waiting.add(attempt)
    for (const signal of signals) signal.addEventListener('abort', abort, { once: true })
    attempt()
  })
}
