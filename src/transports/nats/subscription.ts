import { pause } from '../../model/clock.ts'
import { closedError } from '../../model/closed-error.ts'
import type { Delivery } from '../../model/delivery.ts'
import { type Ends, untilEnded } from '../../transport/ends.ts'
import type { ReceiveOptions, Subscription } from '../../transport/transport.ts'
import { type Arriving, giveBack } from './arriving.ts'
import { type Fullness, openFullness } from './fullness.ts'
import { openHand } from './hand.ts'
import type { Held } from './held.ts'
import { lanePulls } from './lane-pulls.ts'
import { type Pulls, singlePull } from './pulls.ts'
import { renewBatch, settleBatch } from './settle.ts'
import { RECEIVE_MAX } from './traits.ts'

export interface SubscriptionParts extends Omit<Arriving, 'hand' | 'onAstray'> {
  readonly onClose: () => void
}

/** How long a closing subscription waits for its releases; after that the ack wait runs out. */
const CLOSE_TIMEOUT_MS = 2_000

/** Pulled, so `max` of `receive` alone bounds what is in flight; `maxInFlight` is for backends that push. */
export function natsSubscription(parts: SubscriptionParts): Subscription {
  const { store, names, ackWaitMs } = parts
  const hand = openHand(store, ackWaitMs)
  const closing = new AbortController()
  const fullness = openFullness(store, names)
  const settling = { store, names, hand, ackWaitMs }
  const arriving = { ...parts, hand, onAstray: tellOnce(parts) }
  const pulls = parts.sources.length === 1 ? singlePull(arriving) : lanePulls(arriving)

  return {
    async receive(options) {
      if (closing.signal.aborted) throw closedError('the subscription')
      const signals = [options.signal, closing.signal, store.closing]
      return await untilEnded(signals, (ends) =>
        receiving({ ...arriving, pulls, fullness, ends }, options),
      )
    },
    settle: (batch) => settleBatch(settling, batch),
    renew: (batch, leaseMs) => renewBatch(settling, batch, leaseMs),
    resize() {},
    async close() {
      if (closing.signal.aborted) return
      closing.abort()
      parts.onClose()
      await letGo(parts, [...pulls.stop(), ...hand.empty().filter((held) => !held.leaving)])
    },
  }
}

interface Receiving extends Arriving {
  readonly pulls: Pulls
  readonly fullness: Fullness
  readonly ends: Ends
}

async function receiving(
  parts: Receiving,
  { max, waitMs }: ReceiveOptions,
): Promise<readonly Delivery[]> {
  const { store, ends } = parts
  const endAt = store.clock.now() + waitMs
  const batch = Math.min(RECEIVE_MAX, Math.max(1, max))
  while (!ends.reached()) {
    const leftMs = Math.max(0, endAt - store.clock.now())
    const came = await parts.pulls.next(batch, leftMs, ends)
    if (ends.reached()) await giveBack(parts, came)
    if (ends.reached()) return []
    const ours = await alone(parts, came)
    parts.hand.take(ours)
    if (ours.length > 0) return ours.map((held) => held.delivery)
    parts.fullness.look()
    if (store.clock.now() >= endAt) break
  }
  return []
}

/**
 * A suspect comes alone. What came with it goes back before: to the server it is handed out as well, and if the suspect kills
 * this process again, its neighbours would be blamed for a run that they never had.
 */
async function alone(parts: Receiving, came: readonly Held[]): Promise<readonly Held[]> {
  const suspect = came.find((held) => held.alone)
  if (suspect === undefined) return came
  const others = came.filter((held) => held !== suspect)
  await giveBack(parts, [...others, ...parts.pulls.stop()])
  return [suspect]
}

/** Whoever sent it does not know of the lanes, and will send more. */
function tellOnce({ store, names }: SubscriptionParts): (orderingKey: string) => void {
  let told = false
  return (orderingKey) => {
    if (told) return
    told = true
    store.logger.warn(
      `nats: queue "${names.queue}": a message with the ordering key "${orderingKey}" came beside its lane, so its order is not kept; ` +
        'its sender must have nats({ lanes }) as the workers do, or publish to the lane itself',
      { queue: names.queue, orderingKey },
    )
  }
}

async function letGo(parts: SubscriptionParts, all: readonly Held[]): Promise<void> {
  const { store } = parts
  for (const held of all) held.claim.lose()
  if (all.length === 0 || store.client.nc.isClosed()) return
  const ended = new AbortController()
  const late = pause(store.clock, CLOSE_TIMEOUT_MS, ended.signal).then(() => false)
  const done = giveBack(parts, all).then(() => true)
  const given = await Promise.race([done, late]).catch(() => false)
  ended.abort()
  done.catch(() => {})
  if (given) return
  store.logger.warn(
    'messages in hand could not be released; they come back when their ack wait runs out',
    { messages: all.length },
  )
}
