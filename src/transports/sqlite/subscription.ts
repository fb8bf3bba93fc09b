import { closedError } from '../../model/closed-error.ts'
import type { Delivery, Settled, Settlement } from '../../model/delivery.ts'
import { type Ends, untilEnded } from '../../transport/ends.ts'
import type { ReceiveOptions, Subscription } from '../../transport/transport.ts'
import { type Claimed, claim, probe } from './claim.ts'
import { type Held, handOut, heldOf } from './held.ts'
import { giveBack, renewBatch, settleBatch } from './settle.ts'
import type { Store } from './store.ts'

export interface SubscriptionParts {
  readonly store: Store
  readonly queueId: number
  readonly leaseMs: number
  readonly onClose: () => void
}

/** How long a closing subscription waits for the write lock; after that its leases simply run out. */
const CLOSE_BUSY_MS = 1_000
/** What is held without ever being settled (its effect's transaction acked it) is forgotten from this number on. */
const TIDY_FROM = 1_000

/** Pulled, so `max` of `receive` alone bounds what is in flight; `maxInFlight` is for backends that push. */
export function sqliteSubscription(parts: SubscriptionParts): Subscription {
  const { store } = parts
  const hand = openHand()
  const closing = new AbortController()

  return {
    async receive(options) {
      if (closing.signal.aborted) throw closedError('the subscription')
      const signals = [options.signal, closing.signal, store.closing]
      return await untilEnded(signals, (ends) => receiving({ ...parts, hand, ends }, options))
    },
    async settle(batch) {
      const outcomes = await store.write(() => settleBatch(store.handle, batch, store.clock.now()))
      note(batch, outcomes)
      if (batch.some(bringsBack)) store.bell.ring(parts.queueId)
      return outcomes
    },
    async renew(batch, leaseMs) {
      if (batch.length === 0) return []
      const until = await renewing(store, batch, leaseMs)
      for (const [at, delivery] of batch.entries()) {
        const held = heldOf(delivery)
        if (!held) continue
        if (until.outcomes[at]?.ok) held.leaseUntil = until.leaseUntil
        else held.lose()
      }
      return until.outcomes
    },
    resize() {},
    async close() {
      if (closing.signal.aborted) return
      closing.abort()
      parts.onClose()
      await letGo(parts, hand)
    },
  }
}

/** Itself, or the next one of its key. */
function bringsBack({ as, delivery }: Settlement): boolean {
  return as === 'released' || delivery.envelope.orderingKey !== undefined
}

interface Renewed {
  readonly outcomes: readonly Settled[]
  readonly leaseUntil: number
}

function renewing(store: Store, batch: readonly Delivery[], leaseMs: number): Promise<Renewed> {
  return store.write(
    () => {
      const now = store.clock.now()
      return { outcomes: renewBatch(store.handle, batch, leaseMs, now), leaseUntil: now + leaseMs }
    },
    { durable: false },
  )
}

function note(batch: readonly Settlement[], outcomes: readonly Settled[]): void {
  for (const [at, { delivery }] of batch.entries()) {
    const held = heldOf(delivery)
    if (outcomes[at]?.ok) held?.forget()
    else held?.lose()
  }
}

interface Receiving extends SubscriptionParts {
  readonly hand: Hand
  readonly ends: Ends
}

async function receiving(parts: Receiving, options: ReceiveOptions): Promise<readonly Delivery[]> {
  const { store, queueId, ends } = parts
  const { clock, bell, handle } = store
  const { signal } = options
  const endAt = clock.now() + options.waitMs
  while (!ends.reached()) {
    const since = bell.rings(queueId)
    const found = await store.read(() => probe(handle, queueId, clock.now()), { signal })
    if (ends.reached()) break
    if (found.work) {
      const deliveries = await claiming(parts, Math.max(1, options.max), signal)
      if (deliveries.length > 0) return deliveries
    }
    const leftMs = endAt - clock.now()
    if (leftMs <= 0) break
    // Work that was seen and then taken by another: look again at once, the probe tells what is left.
    if (found.work) continue
    const dueMs = (found.dueAt ?? Number.POSITIVE_INFINITY) - clock.now()
    await bell.wait(queueId, since, Math.min(leftMs, Math.max(1, dueMs)), ends.signal())
  }
  return []
}

async function claiming(
  { store, queueId, leaseMs, hand, ends }: Receiving,
  max: number,
  signal: AbortSignal,
): Promise<readonly Delivery[]> {
  const { handle, clock, bell } = store
  const { deliveries, reclaimed } = await store.write(
    () => {
      if (ends.reached()) return nothing
      const now = clock.now()
      const claimed = claim(handle, { queueId, max, leaseMs }, now)
      return { deliveries: hand.take(claimed, queueId, now), reclaimed: claimed.reclaimed }
    },
    { signal, durable: false },
  )
  for (const other of reclaimed) if (other !== queueId) bell.ring(other)
  return deliveries
}

const nothing = { deliveries: [], reclaimed: new Set<number>() } as const

async function letGo({ store, queueId }: SubscriptionParts, hand: Hand): Promise<void> {
  const all = hand.empty()
  for (const held of all) held.lose()
  if (all.length === 0 || store.closing.aborted) return
  try {
    await store.write(() => giveBack(store.handle, all, store.clock.now()), {
      busyTimeoutMs: CLOSE_BUSY_MS,
    })
    store.bell.ring(queueId)
  } catch (error) {
    store.logger.warn(
      'messages in hand could not be released; they come back when their leases end',
      {
        messages: all.length,
        error,
      },
    )
  }
}

/** What this subscription holds. */
interface Hand {
  take(claimed: Claimed, queueId: number, now: number): readonly Delivery[]
  empty(): readonly Held[]
}

function openHand(): Hand {
  const inHand = new Set<Held>()
  let tidyAt = TIDY_FROM
  const forget = (held: Held): void => void inHand.delete(held)
  const tidy = (now: number): void => {
    if (inHand.size < tidyAt) return
    for (const held of inHand) if (held.leaseUntil <= now) inHand.delete(held)
    tidyAt = Math.max(TIDY_FROM, 2 * inHand.size)
  }
  return {
    take({ rows, fence, leaseUntil }, queueId, now) {
      tidy(now)
      return rows.map((row) => {
        const held = handOut(row, { queueId, fence, leaseUntil, forget })
        inHand.add(held)
        return held.delivery
      })
    },
    empty() {
      const all = [...inHand]
      inHand.clear()
      return all
    },
  }
}
