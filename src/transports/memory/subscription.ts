import type { Clock } from '../../model/clock.ts'
import { closedError } from '../../model/closed-error.ts'
import {
  type Dead,
  type Delivery,
  type Settled,
  type Settlement,
  settled,
} from '../../model/delivery.ts'
import { DELAY_MAX_MS } from '../../transport/keeps-all.ts'
import { lost } from '../../transport/outcomes.ts'
import { givenBack, lastHistory } from '../../transport/settling.ts'
import type { ReceiveOptions, Subscription } from '../../transport/transport.ts'
import { type Held, handOut, heldOf } from './held.ts'
import type { MemoryQueue } from './queue.ts'
import { waitFor } from './waiting.ts'

export interface SubscriptionParts {
  readonly queue: MemoryQueue
  readonly clock: Clock
  readonly leaseMs: number
  readonly onClose: () => void
}

/**
 * Nothing here ever waits for a socket or a disk, so a worker's chain of receive, handle and settle would run in
 * microtasks only. Measured: a handler that sends the next message held up every timer and signal for as long as it
 * went on. A turn now and then lets them in; they wait for some 50 ms at most.
 */
const RECEIVES_PER_TURN = 1_000

function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}

/**
 * Pulled, so `max` of `receive` alone bounds what is in flight; `maxInFlight` is for backends that
 * push.
 */
export function memorySubscription(parts: SubscriptionParts): Subscription {
  const { queue, clock, leaseMs } = parts
  const inHand = new Set<Held>()
  const closing = new AbortController()
  let receives = 0

  const claim = (max: number): readonly Delivery[] => {
    if (closing.signal.aborted) return []
    return queue.claim(max, leaseMs, clock.now()).map((entry) => {
      const { delivery, held } = handOut(queue, entry, (one) => inHand.delete(one))
      inHand.add(held)
      return delivery
    })
  }

  return {
    async receive(options: ReceiveOptions) {
      if (++receives % RECEIVES_PER_TURN === 0) await turn()
      if (closing.signal.aborted) throw closedError('the subscription')
      if (options.signal.aborted) return []
      const max = Math.max(1, options.max)
      const atOnce = claim(max)
      if (atOnce.length > 0 || options.waitMs <= 0) return atOnce
      const signals = [options.signal, closing.signal]
      return waitFor({ queue, clock, waitMs: options.waitMs, signals, claim: () => claim(max) })
    },
    async settle(batch) {
      const outcomes = batch.map((settlement) => settleOne(settlement, clock.now()))
      queue.wake()
      return outcomes
    },
    async renew(batch, renewedMs) {
      return batch.map((delivery) => renewOne(delivery, renewedMs, clock.now()))
    },
    resize() {},
    async close() {
      if (closing.signal.aborted) return
      closing.abort()
      const now = clock.now()
      const { entries } = queue
      for (const held of [...inHand]) {
        held.lose()
        const { entry, fence } = held
        if (entries.has(entry.envelope.id) && queue.holds(entry, fence, now)) {
          const { alone, history } = entry
          queue.release(entry, { history, alone, readyAt: now }, now)
        }
      }
      parts.onClose()
      queue.wake()
    },
  }
}

function settleOne(settlement: Settlement, now: number): Settled {
  const held = heldOf(settlement.delivery)
  if (!held?.queue.holds(held.entry, held.fence, now)) return lose(held)
  const { entry, queue } = held
  held.forget()
  if (settlement.as === 'released') {
    const { delayMs, ...attempts } = givenBack(entry, settlement, DELAY_MAX_MS)
    queue.release(entry, { ...attempts, readyAt: now + delayMs }, now)
    return settled
  }
  if (settlement.as === 'dead') bury(held, settlement, now)
  else queue.remove(entry, now)
  return settled
}

function bury(held: Held, settlement: Dead, now: number): void {
  const { entry, queue } = held
  const { errorClass, reason } = settlement
  queue.bury(entry, now)
  queue.dead.add({
    envelope: entry.envelope,
    queue: queue.spec.name,
    owner: queue.spec.owner,
    errorClass,
    reason,
    history: lastHistory(entry, settlement),
    sentAt: entry.sentAt,
    deadAt: now,
  })
}

function renewOne(delivery: Delivery, leaseMs: number, now: number): Settled {
  const held = heldOf(delivery)
  if (!held?.queue.holds(held.entry, held.fence, now)) return lose(held)
  held.queue.renew(held.entry, leaseMs, now)
  return settled
}

function lose(held: Held | undefined): Settled {
  held?.lose()
  return lost
}
