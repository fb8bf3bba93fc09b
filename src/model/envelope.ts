/** What a transport carries: the encoded message with what the backend must know about it. */
export interface Envelope {
  /** Made by the sender. Sending the same id again stores nothing while the first one is stored. */
  readonly id: string
  readonly body: Uint8Array
  readonly headers: Readonly<Record<string, string>>
  /** Given by the sender; absent when the worker derives the key from the payload. Survives retry and redrive. */
  readonly idempotencyKey?: string
  /** Per-entity order for those who keep it (the outbox relay today). */
  readonly orderingKey?: string
  /** Whose share it takes among those that wait: a tenant. For transports with the trait `fairness`. */
  readonly fairKey?: string
  /** How many messages of its key go for one of another, 0.01 to 100. Absent: 1. */
  readonly fairWeight?: number
  /** Integer 0 to 9, higher first. */
  readonly priority: number
  /** Wait this long before the first attempt; a duration, so that no two clocks are compared. */
  readonly delayMs?: number
  /** Epoch ms, compared with the backend's clock. Never together with `delayMs`. */
  readonly readyAt?: number
  /**
   * 1, 2, … for a copy that replaces a failed or redriven message of the same id; absent for the first. A backend that drops
   * what it has seen by id must take id and copy together, or it would drop the copy.
   */
  readonly copy?: number
  /** Keys that the store must remember; at most one of each kind. */
  readonly remember?: readonly RememberedKey[]
}

/** A sender's key that must not store a second message within its window. */
export interface RememberedKey {
  readonly kind: 'idempotency' | 'dedupe'
  readonly key: string
  /** Hash of the canonical payload; the same key with another one is a conflict. Undefined: payload is ignored. */
  readonly fingerprint: string | undefined
  readonly windowMs: number
}
