import type { QueueTotal, TotalReading } from './queue-total.ts'

/**
 * What leaves a queue that others work: from two totals of the backend and what was sent in between. What other processes sent meanwhile
 * is not known here and makes it look slower, so a sender comes back rather too late than too early.
 */
export interface SeenDrain {
  /** The last known, 0 when there is none; looks again in the background when that is old. */
  perSecond(): number
}

/** Between two looks. Shorter and the total hardly moves; a gauge costs the backend a count. */
const LOOK_MS = 1_000
const FORGET_MS = 60_000

export function seenDrain(now: () => number, total: QueueTotal): SeenDrain {
  let from: TotalReading | undefined
  let perSecond = 0

  /** Whoever asked for it. */
  const take = (to: TotalReading | undefined): void => {
    if (to === undefined || (from !== undefined && to.at - from.at < LOOK_MS)) return
    const isKnown = from !== undefined && to.at - from.at <= FORGET_MS
    perSecond = isKnown && from !== undefined ? rate(from, to) : 0
    from = to
  }

  return {
    perSecond: () => {
      take(total.last)
      const age = from === undefined ? Number.POSITIVE_INFINITY : now() - from.at
      // A backend that cannot be asked tells its senders itself.
      if (age >= LOOK_MS) total.read().catch(() => undefined)
      return age > FORGET_MS ? 0 : perSecond
    },
  }
}

function rate(from: TotalReading, to: TotalReading): number {
  const left = from.total + (to.sentBefore - from.sentBefore) - to.total
  return Math.max(0, (left * 1_000) / (to.at - from.at))
}
