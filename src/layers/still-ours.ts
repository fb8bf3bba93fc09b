import type { Delivery } from '../model/delivery.ts'
import type { Subscription } from '../transport/transport.ts'

/**
 * Which of these are still ours, asked of the backend where it can be asked: what a holder does that was stopped past its
 * lease must leave no trace. The answer can be outdated a moment later; then a message is doubled, not lost.
 */
export async function stillOurs(
  subscription: Subscription,
  deliveries: readonly Delivery[],
  leaseMs: number,
): Promise<ReadonlySet<Delivery>> {
  const held = deliveries.filter(({ claim }) => !claim.lost.aborted)
  const { renew } = subscription
  if (renew === undefined || held.length === 0) return new Set(held)
  const renewed = await renew(held, leaseMs)
  return new Set(held.filter((_, i) => renewed[i]?.ok))
}
