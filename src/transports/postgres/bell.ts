import type { Clock } from '../../model/clock.ts'

/** Wakes the receives of one connection that wait. */
export interface Bell {
  /** Grows with each ring; read it before looking at the tables. */
  rings(queueId: number): number
  /** There may be something new for this queue, or for all of them. */
  ring(queueId?: number): void
  /** Resolves on a ring after `since`, after `ms`, or on abort. */
  wait(queueId: number, since: number, ms: number, signal: AbortSignal): Promise<void>
  close(): void
}

interface Waiter {
  readonly queueId: number
  readonly wake: () => void
}

export function openBell(clock: Clock): Bell {
  const waiters = new Set<Waiter>()
  const counts = new Map<number, number>()
  let forAll = 0
  const rings = (queueId: number): number => forAll + (counts.get(queueId) ?? 0)

  return {
    rings,
    ring(queueId) {
      if (queueId === undefined) forAll += 1
      else counts.set(queueId, (counts.get(queueId) ?? 0) + 1)
      for (const waiter of [...waiters]) {
        if (queueId === undefined || waiter.queueId === queueId) waiter.wake()
      }
    },
    wait(queueId, since, ms, signal) {
      if (rings(queueId) !== since || signal.aborted || ms <= 0) return Promise.resolve()
      return new Promise((resolve) => {
        const wake = (): void => {
          waiters.delete(waiter)
          cancel()
          signal.removeEventListener('abort', wake)
          resolve()
        }
        const waiter: Waiter = { queueId, wake }
        const cancel = clock.after(ms, wake)
        signal.addEventListener('abort', wake, { once: true })
        waiters.add(waiter)
      })
    },
    close() {
      for (const waiter of [...waiters]) waiter.wake()
    },
  }
}
