import type { Delivery } from '../../model/delivery.ts'
import { LazyClaim } from '../../transport/lazy-claim.ts'
import type { Entry } from './entry.ts'
import type { MemoryQueue } from './queue.ts'

const HELD: unique symbol = Symbol('held')

/** The receipt: one handing-out, as its subscription knows it. */
export interface Held {
  readonly [HELD]: true
  readonly queue: MemoryQueue
  readonly entry: Entry
  readonly fence: bigint
  /** Tells the holder that it is no longer his. */
  lose(): void
  /** The delivery is settled; its subscription need not release it any more. */
  forget(): void
}

/** The receipt of a delivery that a memory transport made. */
export function heldOf(delivery: Delivery): Held | undefined {
  const { receipt } = delivery
  return isHeldReceipt(receipt) ? receipt : undefined
}

function isHeldReceipt(receipt: unknown): receipt is Held {
  return typeof receipt === 'object' && receipt !== null && HELD in receipt
}

export interface Handing {
  readonly delivery: Delivery
  readonly held: Held
}

export function handOut(queue: MemoryQueue, entry: Entry, forget: (held: Held) => void): Handing {
  const claim = new LazyClaim(entry.leaseEndsAt)
  const held: Held = {
    [HELD]: true,
    queue,
    entry,
    fence: entry.fence,
    lose() {
      forget(held)
      claim.lose()
    },
    forget: () => forget(held),
  }
  const delivery: Delivery = {
    envelope: entry.envelope,
    sentAt: entry.sentAt,
    deliveries: entry.deliveries,
    history: entry.history,
    alone: entry.alone,
    fence: entry.fence,
    claim,
    lane: undefined,
    position: undefined,
    receipt: held,
  }
  return { delivery, held }
}
