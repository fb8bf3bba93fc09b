import type { Envelope } from './envelope.ts'
import type { Fault } from './fault.ts'
import type { AttemptHistory, AttemptRecord, ErrorClass } from './history.ts'

/** One handing-out of a message to one worker. */
export interface Delivery {
  readonly envelope: Envelope
  /**
   * The message came without an id, and the one in `envelope` was made for this delivery: the next one has another, so no inbox
   * can know it again. Absent where an id stays.
   */
  readonly idIsPassing?: true
  /** Epoch ms by the store's clock, when the message was stored. */
  readonly sentAt: number
  /** Times this message was handed out, this one included; undefined where the backend does not say. */
  readonly deliveries: number | undefined
  /** Attempts that count so far, and what is remembered of them. */
  readonly history: AttemptHistory
  /** Its last holder died with it: run it alone. Such deliveries come one to a batch. */
  readonly alone: boolean
  /** Grows with each handing out; checked in the effect's transaction. Undefined where there is no such thing. */
  readonly fence: bigint | undefined
  readonly claim: Claim
  /** Where order holds: a partition, a message group. Undefined where the backend has none. */
  readonly lane: string | undefined
  /** Position within the lane, for backends that commit positions. */
  readonly position: bigint | undefined
  /** Opaque to all but the transport that made it. */
  readonly receipt: unknown
  /**
   * Present when the body lies elsewhere (claim check): `envelope` is then the reference, which is what is settled, and this
   * fetches the message as it was sent. Never rejects; once it answered ok it answers the same again.
   */
  readonly fetchBody?: () => Promise<FetchedBody>
}

/** `retryable`: where the body lies could not be asked; else it is not there and never will be. */
export type FetchedBody =
  | { readonly ok: true; readonly envelope: Envelope }
  | { readonly ok: false; readonly retryable: boolean; readonly error: unknown }

/** Why a delivery is ours. */
export interface Claim {
  /** Epoch ms by the caller's clock, a hint; undefined for sessions and assignments. */
  readonly expiresAt: number | undefined
  /** Fires while there is still time to settle: a planned rebalance, a closing channel. */
  readonly ending: AbortSignal
  /** Fires when the delivery is no longer ours, whatever the cause. Lease stores fire it from `renew` and `close`. */
  readonly lost: AbortSignal
  /**
   * Whether by our clock somebody else may have it by now, though no signal has fired: a process that was stopped runs on before
   * any timer. Only of backends that take it back sooner than the lease ends, or that have no lease. Once it says so, the message
   * comes again by itself, though it is not settled.
   */
  readonly isOver?: (() => boolean) | undefined
  /**
   * Of backends that commit positions, where all deliveries of a lane share one claim: the note that was committed with the
   * lane's position when the claim began. Undefined when there was none.
   */
  readonly note?: string
}

/** The three ends of a delivery. */
export type Settlement = Acked | Released | Dead

export interface Acked {
  readonly as: 'acked'
  readonly delivery: Delivery
  /** For backends that commit positions: commit this for the delivery's lane, and not that all up to the delivery is done. */
  readonly upTo?: LanePosition
}

export interface LanePosition {
  /** The first one that is not done. */
  readonly position: bigint
  /** Kept beside it, at most 2,000 characters; the next holder of the lane finds it in its claim. Empty: nothing to keep. */
  readonly note: string
}

export interface Released {
  readonly as: 'released'
  readonly delivery: Delivery
  readonly delayMs: number
  /** Whether this run counts against `retry.attempts`. */
  readonly counted: boolean
  readonly attempt?: AttemptRecord
}

export interface Dead {
  readonly as: 'dead'
  readonly delivery: Delivery
  readonly reason: string
  readonly errorClass: ErrorClass
  /** The last failure; absent when the history already holds it (three crashes). */
  readonly attempt?: AttemptRecord
}

/** A duplicate answers the first message's id. */
export type Sent =
  | { readonly ok: true; readonly id: string; readonly duplicate: boolean }
  | { readonly ok: false; readonly fault: Fault }

export type Settled = { readonly ok: true } | { readonly ok: false; readonly fault: Fault }

export const settled: Settled = { ok: true }
