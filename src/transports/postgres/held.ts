import type { Delivery } from '../../model/delivery.ts'
import type { Row } from '../../sql/executor.ts'
import { LazyClaim } from '../../transport/lazy-claim.ts'
import { envelopeOf, historyOf, momentOf } from './row.ts'

const HELD: unique symbol = Symbol('held')

/** The receipt: one handing-out, as its subscription knows it. */
export interface Held {
  readonly [HELD]: true
  readonly seq: number
  /** The claim that the message's row names now; moves when only a part of a batch is renewed. */
  claimId: number
  readonly delivery: Delivery
  /** Acked in a transaction of the user's, which has committed or not: nobody will renew it. */
  leaving: boolean
  /** Tells the holder that it is no longer his. */
  lose(): void
}

/** The receipt of a delivery that a Postgres transport made, also when a layer has spread the delivery. */
export function heldOf(delivery: Delivery): Held | undefined {
  const { receipt } = delivery
  return isHeld(receipt) ? receipt : undefined
}

function isHeld(receipt: unknown): receipt is Held {
  return typeof receipt === 'object' && receipt !== null && HELD in receipt
}

/** @param expiresAt epoch ms by the caller's clock, counted from before the claim, so that it is never too late */
export function handOut(row: Row, expiresAt: number): Held {
  const claim = new LazyClaim(expiresAt)
  const claimId = Number(row.claim_id)
  const draft: Omit<Delivery, 'receipt'> & { receipt: unknown } = {
    envelope: envelopeOf(row),
    sentAt: momentOf(row.sent_at),
    deliveries: Number(row.deliveries),
    history: historyOf(row),
    alone: row.alone === true,
    fence: BigInt(claimId),
    claim,
    lane: undefined,
    position: undefined,
    receipt: undefined,
  }
  const held: Held = {
    [HELD]: true,
    seq: Number(row.seq),
    claimId,
    delivery: draft,
    leaving: false,
    lose: () => claim.lose(),
  }
  draft.receipt = held
  return held
}
