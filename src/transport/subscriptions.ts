import type { Subscription } from './transport.ts'

/** The subscriptions of one transport that are open; they close with it. */
export interface Subscriptions {
  /** @param make opens one that calls `onClose` when it closes */
  open(make: (onClose: () => void) => Subscription): Subscription
  /** The same of one that is not there at once. */
  openLater(make: (onClose: () => void) => Promise<Subscription>): Promise<Subscription>
  /** Closes all of them, side by side. */
  close(): Promise<void>
}

export function openSubscriptions(): Subscriptions {
  const open = new Set<Subscription>()
  return {
    open(make) {
      const subscription = make(() => open.delete(subscription))
      open.add(subscription)
      return subscription
    },
    async openLater(make) {
      let remove = (): void => {}
      const subscription = await make(() => remove())
      remove = () => open.delete(subscription)
      open.add(subscription)
      return subscription
    },
    async close() {
      await Promise.all([...open].map((subscription) => subscription.close()))
    },
  }
}
