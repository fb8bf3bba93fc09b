import { retryAfterMs } from '../flow/capacity.ts'
import type { QueueTotal } from './queue-total.ts'
import { type SeenDrain, seenDrain } from './seen-drain.ts'

/** Messages per second that left the queue lately, and from it when a full queue has room again. */
export interface DrainRate {
  /** This process handled some. */
  note(messages: number): void
  /** When a sender that met a full queue should come back, in ms. */
  retryAfterMs(maxDepth: number): number
}

export interface DrainRateOptions {
  readonly now: () => number
  /** The longest that a sender is sent away for, and as long as nothing is known to leave the queue. */
  readonly maxMs: number
  /** Asked while the queue is full and this process handles nothing of it. */
  readonly total: QueueTotal
}

const SLOTS = 10

export function drainRate({ now, maxMs, total }: DrainRateOptions): DrainRate {
  const counts = new Array<number>(SLOTS).fill(0)
  const others: SeenDrain = seenDrain(now, total)
  let second = Math.floor(now() / 1000)

  const roll = (): void => {
    const current = Math.floor(now() / 1000)
    for (let s = second + 1; s <= Math.min(current, second + SLOTS); s++) counts[s % SLOTS] = 0
    second = Math.max(second, current)
  }

  return {
    note: (messages) => {
      roll()
      counts[second % SLOTS] = (counts[second % SLOTS] ?? 0) + messages
    },
    retryAfterMs: (maxDepth) => {
      roll()
      const own = counts.reduce((sum, n) => sum + n, 0) / SLOTS
      const perSecond = own > 0 ? own : others.perSecond()
      return retryAfterMs({ maxDepth, perSecond, maxMs })
    },
  }
}
