import type { Clock } from '../model/clock.ts'
import type { Settlement } from '../model/delivery.ts'

/** Messages of a worker that are handled and cannot be settled, because somebody's open transaction holds their ordering keys. */
export interface HeldSettlements {
  readonly size: number
  has(settlement: Settlement): boolean
  /** False for one that is there already. */
  enter(settlement: Settlement): boolean
  /** Idempotent. */
  leave(settlement: Settlement): void
  /** A sentence when one has waited for long. */
  problems(): readonly string[]
}

/** Longer than a transaction should be open that sends; as for sends that wait. */
const LONG_MS = 5_000

export function heldSettlements(queue: string, clock: Clock): HeldSettlements {
  /** Since when, the longest first. */
  const since = new Map<Settlement, number>()
  return {
    get size() {
      return since.size
    },
    has: (settlement) => since.has(settlement),
    enter: (settlement) => {
      if (since.has(settlement)) return false
      since.set(settlement, clock.now())
      return true
    },
    leave: (settlement) => void since.delete(settlement),
    problems: () => {
      for (const [{ delivery }, from] of since) {
        const forMs = clock.now() - from
        if (forMs < LONG_MS) return []
        const [what, whose] =
          since.size === 1
            ? ['a handled message waits', 'its']
            : [`${since.size} handled messages wait`, 'their']
        return [
          `queue "${queue}": ${what} to be settled, because an open transaction holds ${whose} ordering key, the first ` +
            `(key "${delivery.envelope.orderingKey}") for ${Math.round(forMs / 1_000)} s; look for a transaction that sent with it and was left open`,
        ]
      }
      return []
    },
  }
}
