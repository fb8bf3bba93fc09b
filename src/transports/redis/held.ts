import type { Delivery } from '../../model/delivery.ts'
import { LazyClaim } from '../../transport/lazy-claim.ts'
import type { Entry } from './entry.ts'

const HELD: unique symbol = Symbol('held')

/** The receipt: one handing-out, as its subscription knows it. */
export interface Held {
  readonly [HELD]: true
  /** The claim that it is of; moves when only a part of a batch is renewed. */
  claim: string
  /** Of the stream; stands for this one handing out. */
  readonly entryId: string
  readonly delivery: Delivery
  /** Tells the holder that it is no longer his. */
  lose(): void
}

/** The receipt of a delivery that a Redis transport made, also when a layer has spread the delivery. */
export function heldOf(delivery: Delivery): Held | undefined {
  const { receipt } = delivery
  return isHeld(receipt) ? receipt : undefined
}

function isHeld(receipt: unknown): receipt is Held {
  return typeof receipt === 'object' && receipt !== null && HELD in receipt
}

export interface Handing {
  readonly claim: string
  readonly fence: bigint
  readonly alone: boolean
  /** Epoch ms by the caller's clock, counted from before the claim, so that it is never too late. */
  readonly expiresAt: number
}

export function handOut(entry: Entry, handing: Handing): Held {
  const claim = new LazyClaim(handing.expiresAt)
  const draft: Omit<Delivery, 'receipt'> & { receipt: unknown } = {
    envelope: entry.envelope,
    sentAt: entry.sentAt,
    deliveries: entry.deliveries + 1,
    history: entry.history,
    alone: handing.alone,
    fence: handing.fence,
    claim,
    lane: undefined,
    position: undefined,
    receipt: undefined,
  }
  const held: Held = {
    [HELD]: true,
    claim: handing.claim,
    entryId: entry.entryId,
    delivery: draft,
    lose: () => claim.lose(),
  }
  draft.receipt = held
  return held
}
