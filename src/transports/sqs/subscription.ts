import { closedError } from '../../model/closed-error.ts'
import { openBell } from '../../transport/bell.ts'
import { untilEnded } from '../../transport/ends.ts'
import type { Subscription } from '../../transport/transport.ts'
import { openFetcher } from './fetch.ts'
import { openHand } from './hand.ts'
import { giveBack } from './leases.ts'
import { openPolls } from './polls.ts'
import { receiving } from './receive.ts'
import { type Holding, renewBatch, settleBatch } from './settle.ts'
import { CLOSE_TIMEOUT_MS, type Store } from './store.ts'
import { openTray } from './tray.ts'

export interface SubscriptionParts {
  readonly store: Store
  readonly queue: string
  readonly url: string
  readonly leaseMs: number
  /** What still runs after the subscription has closed: the transport waits a moment for it. */
  readonly linger: (running: Promise<unknown>) => void
  readonly onClose: () => void
}

/** Pulled, so `max` of `receive` bounds what is in flight; `maxInFlight` is for backends that push. */
export function sqsSubscription(parts: SubscriptionParts): Subscription {
  const { store, queue, url, leaseMs, linger } = parts
  const closing = new AbortController()
  const bell = openBell<0>(store.clock)
  const hand = openHand()
  const holding: Holding = { store, hand, url }
  const tray = openTray(holding, leaseMs)
  const fetcher = openFetcher({ store, url, leaseMs })
  const polls = openPolls({ store, queue, url, leaseMs, fetcher, tray, bell, linger })

  return {
    async receive(options) {
      if (closing.signal.aborted) throw closedError('the subscription')
      const signals = [options.signal, closing.signal, store.closing]
      return await untilEnded(signals, (ends) =>
        receiving({ holding, tray, polls, bell, ends }, options),
      )
    },
    async settle(batch) {
      const outcomes = await settleBatch(holding, batch)
      // Of a FIFO queue the next one of a group may be on the tray.
      if (hand.tray.length > 0) bell.ring(0)
      return outcomes
    },
    renew: (batch, ms) => renewBatch(holding, batch, ms),
    resize() {},
    async close() {
      if (closing.signal.aborted) return
      closing.abort()
      tray.close()
      polls.close()
      bell.close()
      parts.onClose()
      const all = hand.empty()
      for (const held of all) held.lose()
      await giveBack(store, url, all, CLOSE_TIMEOUT_MS)
    },
  }
}
