import type { Delivery } from '../../model/delivery.ts'
import type { Row } from '../../sql/executor.ts'
import { asNumber } from '../../sql/sqlite-handle.ts'
import { LazyClaim } from '../../transport/lazy-claim.ts'
import { envelopeOf, historyOf } from './row.ts'

const HELD: unique symbol = Symbol('held')

/** The receipt: one handing-out, as its subscription knows it. */
export interface Held {
  readonly [HELD]: true
  readonly seq: number
  readonly queueId: number
  readonly fence: number
  readonly delivery: Delivery
  /** Epoch ms; moves with each renewal. */
  leaseUntil: number
  /** Tells the holder that it is no longer his. */
  lose(): void
  /** The delivery is settled; its subscription need not release it any more. */
  forget(): void
}

export interface Handing {
  readonly queueId: number
  readonly fence: number
  readonly leaseUntil: number
  readonly forget: (held: Held) => void
}

/** The receipt of a delivery that a SQLite transport made, also when a layer has spread the delivery. */
export function heldOf(delivery: Delivery): Held | undefined {
  const { receipt } = delivery
  return isHeld(receipt) ? receipt : undefined
}

function isHeld(receipt: unknown): receipt is Held {
  return typeof receipt === 'object' && receipt !== null && HELD in receipt
}

export function handOut(row: Row, { queueId, fence, leaseUntil, forget }: Handing): Held {
  const claim = new LazyClaim(leaseUntil)
  const draft: Omit<Delivery, 'receipt'> & { receipt: unknown } = {
    envelope: envelopeOf(row),
    sentAt: asNumber(row.sent_at),
    deliveries: asNumber(row.deliveries),
    history: historyOf(row),
    alone: row.alone === 1,
    fence: BigInt(fence),
    claim,
    lane: undefined,
    position: undefined,
    receipt: undefined,
  }
  const held: Held = {
    [HELD]: true,
    seq: asNumber(row.seq),
    queueId,
    fence,
    delivery: draft,
    leaseUntil,
    lose() {
      forget(held)
      claim.lose()
    },
    forget: () => forget(held),
  }
  draft.receipt = held
  return held
}
