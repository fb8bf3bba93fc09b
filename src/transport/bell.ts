import type { Clock } from '../model/clock.ts'

/** Wakes the receives of one connection that wait for news of their queue. */
export interface Bell<Queue> {
  /** Grows with each ring; read it before looking for messages, so that no ring in between is missed. */
  rings(queue: Queue): number
  /** There may be something new for this queue, or for all of them. */
  ring(queue?: Queue): void
  /** Resolves on a ring after `since`, after `ms`, or on abort. */
  wait(queue: Queue, since: number, ms: number, signal: AbortSignal): Promise<void>
  /** How many wait now. */
  waiting(): number
  /** Wakes all. */
  close(): void
}

export function openBell<Queue extends string | number>(clock: Clock): Bell<Queue> {
  const waiters = new Set<Waiter<Queue>>()
  const counts = new Map<Queue, number>()
  let forAll = 0
  const rings = (queue: Queue): number => forAll + (counts.get(queue) ?? 0)

  return {
    rings,
    ring(queue) {
      if (queue === undefined) forAll += 1
      else counts.set(queue, (counts.get(queue) ?? 0) + 1)
      for (const waiter of [...waiters]) {
        if (queue === undefined || waiter.queue === queue) waiter.wake()
      }
    },
    wait(queue, since, ms, signal) {
      if (rings(queue) !== since || signal.aborted || ms <= 0) return Promise.resolve()
      return new Promise((resolve) => {
        const wake = (): void => {
          waiters.delete(waiter)
          cancel()
          signal.removeEventListener('abort', wake)
          resolve()
        }
        const waiter: Waiter<Queue> = { queue, wake }
        const cancel = clock.after(ms, wake)
        signal.addEventListener('abort', wake, { once: true })
        waiters.add(waiter)
      })
    },
    waiting: () => waiters.size,
    close() {
      for (const waiter of [...waiters]) waiter.wake()
    },
  }
}

interface Waiter<Queue> {
  readonly queue: Queue
  readonly wake: () => void
}
