import { closedError } from '../../model/closed-error.ts'
import type { Delivery, Settlement } from '../../model/delivery.ts'
import type { Row } from '../../sql/executor.ts'
import { type Ends, untilEnded } from '../../transport/ends.ts'
import { RECEIVE_MAX } from '../../transport/keeps-all.ts'
import type { ReceiveOptions, Subscription } from '../../transport/transport.ts'
import { type Hand, openHand } from './hand.ts'
import { handOut } from './held.ts'
import { renewBatch } from './renew.ts'
import { news } from './send.ts'
import { giveBack, settleBatch } from './settle.ts'
import { pollEveryMs, query, type Store } from './store.ts'
import { openTender, type Tender } from './tender.ts'

export interface SubscriptionParts {
  readonly store: Store
  readonly queueId: number
  readonly leaseMs: number
  readonly onClose: () => void
}

/** How long a closing subscription waits for its release; after that its leases simply run out. */
const CLOSE_TIMEOUT_MS = 2_000

/** Pulled, so `max` of `receive` alone bounds what is in flight; `maxInFlight` is for backends that push. */
export function postgresSubscription(parts: SubscriptionParts): Subscription {
  const { store, queueId } = parts
  const hand = openHand()
  const tender = openTender(store, queueId, hand.takeLeft)
  const closing = new AbortController()

  return {
    async receive(options) {
      if (closing.signal.aborted) throw closedError('the subscription')
      const signals = [options.signal, closing.signal, store.closing]
      return await untilEnded(signals, (ends) =>
        receiving({ ...parts, hand, tender, ends }, options),
      )
    },
    async settle(batch) {
      const outcomes = await settleBatch({ store, hand, queueId }, batch)
      if (batch.some(({ as }) => as === 'released')) store.bell.ring(queueId)
      if (batch.some(bringsNext)) news(store, queueId)
      return outcomes
    },
    renew: async (batch, leaseMs) =>
      batch.length === 0 ? [] : await renewBatch(store, hand, batch, { queueId, leaseMs }),
    resize() {},
    async close() {
      if (closing.signal.aborted) return
      closing.abort()
      parts.onClose()
      await letGo(parts, hand)
    },
  }
}

/** Its end lets the next one of its key go on, here or elsewhere. */
function bringsNext({ as, delivery }: Settlement): boolean {
  return as !== 'released' && delivery.envelope.orderingKey !== undefined
}

interface Receiving extends SubscriptionParts {
  readonly hand: Hand
  readonly tender: Tender
  readonly ends: Ends
}

async function receiving(parts: Receiving, options: ReceiveOptions): Promise<readonly Delivery[]> {
  const { store, queueId, ends, tender } = parts
  const { clock, bell } = store
  const endAt = clock.now() + options.waitMs
  let nextMs = 0
  while (!ends.reached()) {
    const since = bell.rings(queueId)
    if (tender.isDue()) nextMs = (await tender.look()).nextMs
    if (ends.reached()) break
    const deliveries = await claiming(parts, Math.min(RECEIVE_MAX, Math.max(1, options.max)))
    if (deliveries.length > 0) return deliveries
    if (ends.reached()) break
    const look = await tender.look()
    const leftMs = endAt - clock.now()
    // Work that was seen after nothing could be had: others were faster, or it has just come.
    if (look.ready && !look.paused && leftMs > 0) {
      await bell.wait(queueId, since, 1, options.signal)
      continue
    }
    if (leftMs <= 0) break
    nextMs = look.nextMs
    await bell.wait(queueId, since, Math.min(leftMs, nextMs, pollEveryMs(store)), ends.signal())
  }
  return []
}

async function claiming(parts: Receiving, max: number): Promise<readonly Delivery[]> {
  const { store, queueId, leaseMs, hand, ends } = parts
  const expiresAt = store.clock.now() + leaseMs
  const rows = await query(store, store.sql.CLAIM, [queueId, max, leaseMs, store.owner])
  const all = [...rows].sort(inTurn).map((row) => handOut(row, expiresAt))
  if (all.length > 0 && ends.reached()) {
    // Nobody waits for the answer any more; what arrived late goes back at once.
    await giveBack(store, all, { timeoutMs: CLOSE_TIMEOUT_MS })
    store.bell.ring(queueId)
    return []
  }
  hand.take(all)
  return all.map((held) => held.delivery)
}

/** RETURNING gives rows in no promised order. */
function inTurn(a: Row, b: Row): number {
  return Number(a.turn) - Number(b.turn)
}

async function letGo({ store, queueId }: SubscriptionParts, hand: Hand): Promise<void> {
  const all = hand.empty().filter((held) => !held.leaving)
  for (const held of all) held.lose()
  if (all.length === 0) return
  try {
    await giveBack(store, all, { timeoutMs: CLOSE_TIMEOUT_MS })
    store.bell.ring(queueId)
    store.announcer.announce(queueId)
  } catch (error) {
    store.logger.warn(
      'messages in hand could not be released; they come back when their leases end',
      { messages: all.length, error },
    )
  }
}
