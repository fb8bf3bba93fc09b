import type { Delivery, Settlement } from '../../src/model/delivery.ts'
import type { Transport } from '../../src/transport/transport.ts'

/** For the kit, which looks at bodies: deliveries come with them, as the runtime's readers fetch them. */
export function fetched(inner: Transport): Transport {
  return {
    ...inner,
    subscribe: async (queue, options) => {
      const subscription = await inner.subscribe(queue, options)
      const references = new WeakMap<Delivery, Delivery>()
      const asCame = (delivery: Delivery): Delivery => references.get(delivery) ?? delivery
      const withBody = async (delivery: Delivery): Promise<Delivery> => {
        const found = await delivery.fetchBody?.()
        if (found === undefined) return delivery
        if (!found.ok) throw found.error
        const whole = { ...delivery, envelope: found.envelope }
        references.set(whole, delivery)
        return whole
      }
      const { renew } = subscription
      return {
        ...subscription,
        receive: async (asked) => Promise.all((await subscription.receive(asked)).map(withBody)),
        settle: (batch) =>
          subscription.settle(
            batch.map((one): Settlement => ({ ...one, delivery: asCame(one.delivery) })),
          ),
        ...(renew && { renew: (batch, leaseMs) => renew(batch.map(asCame), leaseMs) }),
      }
    },
  }
}
