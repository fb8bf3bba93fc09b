import type { Msg } from '@nats-io/transport-node'
import { pause } from '../../model/clock.ts'
import { closedError } from '../../model/closed-error.ts'
import type { Delivery } from '../../model/delivery.ts'
import { type Ends, untilEnded } from '../../transport/ends.ts'
import type { ReceiveOptions, Subscription } from '../../transport/transport.ts'
import { readAttempts } from './attempts.ts'
import { type Fullness, openFullness } from './fullness.ts'
import { type Hand, openHand } from './hand.ts'
import { type Held, handingOf, handOut, identityOf } from './held.ts'
import type { QueueNames } from './names.ts'
import { isPassing, pull } from './pull.ts'
import { release, renewBatch, settleBatch } from './settle.ts'
import type { Store } from './store.ts'
import { makeConsumer, orMissing } from './topology.ts'
import { RECEIVE_MAX } from './traits.ts'
import { readWire } from './wire.ts'

export interface SubscriptionParts {
  readonly store: Store
  readonly names: QueueNames
  readonly leaseMs: number
  /** As the consumer on the server has it. */
  readonly ackWaitMs: number
  readonly streamMadeAt: number
  readonly onClose: () => void
}

/** How long a closing subscription waits for its releases; after that the ack wait runs out. */
const CLOSE_TIMEOUT_MS = 2_000
/** A request that waits is made anew this often: one that got lost costs no more. */
const WAIT_MAX_MS = 10_000
/** Between two requests that the server did not serve. */
const RETRY_MS = 100

/** Pulled, so `max` of `receive` alone bounds what is in flight; `maxInFlight` is for backends that push. */
export function natsSubscription(parts: SubscriptionParts): Subscription {
  const { store, names, ackWaitMs } = parts
  const hand = openHand(store, ackWaitMs)
  const closing = new AbortController()
  const fullness = openFullness(store, names)
  const settling = { store, names, hand, ackWaitMs }

  return {
    async receive(options) {
      if (closing.signal.aborted) throw closedError('the subscription')
      const signals = [options.signal, closing.signal, store.closing]
      return await untilEnded(signals, (ends) =>
        receiving({ ...parts, hand, fullness, ends }, options),
      )
    },
    settle: (batch) => settleBatch(settling, batch),
    renew: (batch, leaseMs) => renewBatch(settling, batch, leaseMs),
    resize() {},
    async close() {
      if (closing.signal.aborted) return
      closing.abort()
      parts.onClose()
      await letGo(parts, hand)
    },
  }
}

interface Receiving extends SubscriptionParts {
  readonly hand: Hand
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
    const arrived = await arriving(parts, batch, Math.min(leftMs, WAIT_MAX_MS, parts.ackWaitMs / 2))
    if (ends.reached()) await giveBack(parts, arrived)
    if (ends.reached()) return []
    const ours = await alone(parts, arrived)
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
async function alone(parts: Receiving, arrived: readonly Held[]): Promise<readonly Held[]> {
  const suspect = arrived.find((held) => held.alone)
  if (suspect === undefined) return arrived
  await giveBack(
    parts,
    arrived.filter((held) => held !== suspect),
  )
  return [suspect]
}

async function arriving(parts: Receiving, batch: number, waitMs: number): Promise<readonly Held[]> {
  const { store, names, ends } = parts
  const askedAt = store.clock.now()
  const late = (msg: Msg): void => void giveBackLate(parts, msg, askedAt)
  try {
    const messages = await pull(store, { names, batch, waitMs, ends, late })
    return await Promise.all(messages.map((msg) => held(parts, msg, askedAt)))
  } catch (error) {
    if (!isPassing(error)) throw error
    if (!(await store.tracked(stillThere(store, names))))
      for (const held of parts.hand.empty()) held.claim.lose()
    await pause(store.clock, Math.min(RETRY_MS, waitMs), ends.signal())
    return []
  }
}

/**
 * Why a request was not served. False for a consumer that was deleted and is made anew: it hands out everything again, so what
 * was in hand is ours no more.
 * @throws when the stream is gone or nobody answers
 */
async function stillThere(store: Store, names: QueueNames): Promise<boolean> {
  const { manager } = store.client
  if ((await orMissing(manager.consumers.info(names.stream, names.consumer))) !== undefined) {
    return true
  }
  await manager.streams.info(names.stream)
  if (store.settings.topology === 'create') await makeConsumer(store, names)
  else await manager.consumers.info(names.stream, names.consumer)
  return false
}

async function held(parts: SubscriptionParts, msg: Msg, askedAt: number): Promise<Held> {
  const { store, names, ackWaitMs, leaseMs, streamMadeAt } = parts
  const handing = handingOf(msg.reply)
  if (handing === undefined || msg.reply === undefined) {
    throw new Error(`a message of stream ${names.stream} came without the place for its ack`)
  }
  const wire = readWire(msg.headers)
  const id = identityOf(wire, handing, streamMadeAt)
  const again = handing.deliveries > 1
  const written = again ? await readAttempts(store, names, { id, seq: handing.seq }) : undefined
  const now = store.clock.now()
  const { reply, data: body } = msg
  return handOut({ body, wire, id, reply, handing, written, askedAt, now, ackWaitMs, leaseMs })
}

/** Nobody waits for it any more. */
async function giveBackLate(parts: SubscriptionParts, msg: Msg, askedAt: number): Promise<void> {
  try {
    await giveBack(parts, [await held(parts, msg, askedAt)])
  } catch {
    // It comes back when the ack wait has run out.
  }
}

async function giveBack(
  { store, names }: Pick<SubscriptionParts, 'store' | 'names'>,
  all: readonly Held[],
): Promise<void> {
  await Promise.all(
    all.map((one) => release({ store, names }, one, { delayMs: 0, counted: false })),
  )
}

async function letGo(parts: SubscriptionParts, hand: Hand): Promise<void> {
  const { store } = parts
  const all = hand.empty().filter((held) => !held.leaving)
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
