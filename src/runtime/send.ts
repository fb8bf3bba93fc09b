import type { TransactionAdapter } from '../sql/executor.ts'

/**
 * Any value, as `unknown`: clients are known by their shape when it is used. Written out so that the parameters of an adapter that
 * is written in place, `{ execute: async (sql, params) => rows }`, have their types.
 */
// biome-ignore lint/complexity/noBannedTypes: with null and undefined it is all that `unknown` is, and leaves the adapter in the union
export type SendTransaction = TransactionAdapter | {} | null | undefined

/** How one message is sent. All fields are optional. */
export interface SendOptions {
  /** Wait this long before the first attempt, in ms; 0 to 10 years. Not together with `readyAt`. Default 0. */
  readonly delayMs?: number
  /** Not before this moment: epoch ms or a Date. Not together with `delayMs`. */
  readonly readyAt?: number | Date
  /** Integer 0 to 9, higher first, below `priorities` where the queue names them. Default 0. */
  readonly priority?: number
  /**
   * Remembered with a hash of the payload for `dedupe.windowMs`: the same key and payload stores nothing and answers
   * the first id; another payload is MILLRACE_IDEMPOTENCY_CONFLICT. 1 to 255 printable ASCII characters without spaces.
   */
  readonly idempotencyKey?: string
  /** Remembered for `dedupe.windowMs`, whatever the payload. 1 to 255 printable ASCII characters without spaces. */
  readonly dedupeKey?: string
  /** Messages of one key leave the outbox in order. 1 to 255 printable ASCII characters without spaces. */
  readonly orderingKey?: string
  /** Travels with the message. Names are lower-cased; names that start with `millrace-` are ours. */
  readonly headers?: Readonly<Record<string, string>>
  /** Your open transaction (pg client, postgres.js sql, SQLite handle or `{ execute }`): the message commits with it. */
  readonly tx?: SendTransaction
  /** Only to send again after MILLRACE_OUTCOME_UNKNOWN: the `messageId` of that error. Default: a new UUID v7. */
  readonly id?: string
  /** Stops waiting; what was already on its way may still be stored. */
  readonly signal?: AbortSignal
}

export interface SendResult {
  readonly id: string
  /** True when a remembered key or a known id made this send store nothing; `id` is the first message's. */
  readonly duplicate: boolean
}
