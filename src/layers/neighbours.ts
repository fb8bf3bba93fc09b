import type { Clock } from '../model/clock.ts'
import type { Claim, Delivery } from '../model/delivery.ts'

/** What one consumer has handed out and nobody settled: whatever dies of one of these takes the others with it. */
export interface Neighbours {
  /** Handed out, or renewed. */
  add(deliveries: readonly Delivery[]): void
  /** It was settled, or is no longer ours. */
  remove(delivery: Delivery): void
  /** Whether one is still ours. What nobody renewed for a lease's length runs no longer, wherever it was lost. */
  any(): boolean
}

interface Held {
  since: number
  /** Of a log, whose deliveries share the claim of their lane. */
  readonly positions: Set<bigint> | undefined
}

export function neighbours(clock: Clock, leaseMs: number): Neighbours {
  const held = new Map<Claim, Held>()
  return {
    add: (deliveries) => {
      const since = clock.now()
      for (const { claim, position } of deliveries) {
        let own = held.get(claim)
        if (own === undefined) {
          own = { since, positions: position === undefined ? undefined : new Set() }
          held.set(claim, own)
        }
        own.since = since
        if (position !== undefined) own.positions?.add(position)
      }
    },
    remove: ({ claim, position }) => {
      const positions = held.get(claim)?.positions
      if (position !== undefined) positions?.delete(position)
      if (positions === undefined || positions.size === 0) held.delete(claim)
    },
    any: () => {
      const until = clock.now() - leaseMs
      for (const [claim, { since }] of held) {
        if (!claim.lost.aborted && since > until) return true
        held.delete(claim)
      }
      return false
    },
  }
}
