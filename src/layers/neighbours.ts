import type { Claim, Delivery } from '../model/delivery.ts'

/** What one consumer has handed out and nobody settled: whatever dies of one of these takes the others with it. */
export interface Neighbours {
  add(deliveries: readonly Delivery[]): void
  /** It was settled, or is no longer ours. */
  remove(delivery: Delivery): void
  /** Whether one is still ours. */
  any(): boolean
}

export function neighbours(): Neighbours {
  /** Deliveries of a log share the claim of their lane. */
  const positions = new Map<Claim, Set<bigint | undefined>>()
  const claims = new Set<Claim>()

  const drop = (claim: Claim): void => {
    claims.delete(claim)
    positions.delete(claim)
  }
  return {
    add: (deliveries) => {
      for (const { claim, position } of deliveries) {
        claims.add(claim)
        if (position === undefined) continue
        const own = positions.get(claim)
        if (own === undefined) positions.set(claim, new Set([position]))
        else own.add(position)
      }
    },
    remove: ({ claim, position }) => {
      const own = positions.get(claim)
      own?.delete(position)
      if (own === undefined || own.size === 0) drop(claim)
    },
    any: () => {
      for (const claim of claims) {
        if (!claim.lost.aborted) return true
        drop(claim)
      }
      return false
    },
  }
}
