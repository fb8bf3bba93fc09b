import type { Message } from '@aws-sdk/client-sqs'
import type { Delivery } from '../../model/delivery.ts'
import { freshHistory } from '../../model/history.ts'
import { LazyClaim } from '../../transport/lazy-claim.ts'
import { HELD_MAX_MS } from './traits.ts'
import { envelopeOf } from './wire.ts'

const HELD: unique symbol = Symbol('held')

/** The receipt: one handing-out, as its subscription knows it. */
export interface Held {
  readonly [HELD]: true
  readonly receiptHandle: string
  /** The message group of a FIFO queue. */
  readonly group: string | undefined
  /** Epoch ms by our clock: when its lease ends unless it is renewed. */
  endsAt: number
  /** No renewal goes beyond this: SQS lets nobody hold a message longer. */
  readonly lastEndsAt: number
  readonly delivery: Delivery
  lose(): void
}

/** The receipt of a delivery that an SQS transport made, also when a layer has spread the delivery. */
export function heldOf({ receipt }: Delivery): Held | undefined {
  return isHeld(receipt) ? receipt : undefined
}

function isHeld(receipt: unknown): receipt is Held {
  return typeof receipt === 'object' && receipt !== null && HELD in receipt
}

export interface HandOut {
  /** Epoch ms by our clock, from which the lease counts. */
  readonly since: number
  readonly leaseMs: number
  readonly sns: boolean
}

export function handOut(message: Message, { since, leaseMs, sns }: HandOut): Held {
  const claim = new LazyClaim(since + leaseMs)
  const { Attributes = {} } = message
  const sentAt = Number(Attributes.SentTimestamp ?? since)
  const deliveries = Number(Attributes.ApproximateReceiveCount ?? 1)
  const draft: Omit<Delivery, 'receipt'> & { receipt: unknown } = {
    envelope: envelopeOf(message, sns),
    sentAt,
    deliveries,
    history: freshHistory,
    alone: false,
    // Grows with each receive of this message, and with each copy of it, which SQS stores later.
    fence: BigInt(sentAt) * DELIVERIES_MAX + BigInt(deliveries),
    claim,
    lane: Attributes.MessageGroupId,
    position: positionOf(Attributes.SequenceNumber),
    receipt: undefined,
  }
  const held: Held = {
    [HELD]: true,
    receiptHandle: message.ReceiptHandle ?? '',
    group: Attributes.MessageGroupId,
    endsAt: since + leaseMs,
    lastEndsAt: since + HELD_MAX_MS,
    delivery: draft,
    lose: () => claim.lose(),
  }
  draft.receipt = held
  return held
}

const DELIVERIES_MAX = 1_000_000n

function positionOf(sequence: string | undefined): bigint | undefined {
  return sequence !== undefined && /^\d+$/.test(sequence) ? BigInt(sequence) : undefined
}
