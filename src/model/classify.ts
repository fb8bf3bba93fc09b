import type { ErrorClass } from './history.ts'

/** Why a failure is what it is; printed by `millrace explain-error`. */
export interface Classification {
  readonly errorClass: Exclude<ErrorClass, 'crashed'>
  /** Short and stable: an error code, `HTTP_503`, a SQLSTATE. */
  readonly code: string
  /** The rule that decided, in a sentence. */
  readonly why: string
  /** Throttled: what the other side asked for. Transient: replaces the backoff. */
  readonly delayMs?: number
}

/** A queue's own rules; undefined leaves the decision to the built-in table. */
export type Classify = (error: unknown) => Classification | undefined
