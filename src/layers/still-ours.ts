import type { Delivery } from '../model/delivery.ts'
import type { Subscription } from '../transport/transport.ts'

/**
 * Which of these are still ours, by the claims and, where it can be asked, by the backend: what a holder does that was stopped past
 * its lease or its session must leave no trace. The answer can be outdated a moment later; then a message is doubled, not lost.
 */
export async function stillOurs(
  subscription: Subscription,
  deliveries: readonly Delivery[],
  leaseMs: number,
): Promise<ReadonlySet<Delivery>> {
  const held = deliveries.filter(seemsOurs)
  const { renew } = subscription
  if (renew === undefined || held.length === 0) return new Set(held)
  const renewed = await renew(held, leaseMs)
  return new Set(held.filter((_, i) => renewed[i]?.ok))
}

/** Nothing says that somebody else may have it; see `Claim.isOver` for what does before any signal has fired. */
export function seemsOurs({ claim }: Delivery): boolean {
  return !claim.lost.aborted && claim.isOver?.() !== true
}
