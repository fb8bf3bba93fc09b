import { closedError } from '../model/closed-error.ts'
import type { Subscription } from './transport.ts'

/** The subscriptions of one transport that are open; they close with it. */
export interface Subscriptions<S extends Subscription = Subscription> {
  /**
   * @param make opens one that calls `onClose` when it closes
   * @throws MILLRACE_CLOSED once they close: nobody would close another one
   */
  open(make: (onClose: () => void) => S): S
  /** The same of one that is not there at once; where a close overtakes it, it is closed. */
  openLater(make: (onClose: () => void) => Promise<S>): Promise<S>
  /** Those that are open now. */
  all(): readonly S[]
  /** Closes all of them, side by side. */
  close(): Promise<void>
}

export function openSubscriptions<S extends Subscription = Subscription>(): Subscriptions<S> {
  const open = new Set<S>()
  let isClosing = false
  const refuseLate = (): void => {
    if (isClosing) throw closedError('the transport')
  }
  return {
    open(make) {
      refuseLate()
      const subscription = make(() => open.delete(subscription))
      open.add(subscription)
      return subscription
    },
    async openLater(make) {
      refuseLate()
      let remove = (): void => {}
      const subscription = await make(() => remove())
      remove = () => open.delete(subscription)
      if (isClosing) await subscription.close()
      refuseLate()
      open.add(subscription)
      return subscription
    },
    all: () => [...open],
    async close() {
      isClosing = true
      await Promise.all([...open].map((subscription) => subscription.close()))
    },
  }
}
