/** A classified outcome of a backend call. Faults are values; errors are what a user catches. */
export interface Fault {
  readonly code: FaultCode
  /** The same call may succeed later without a change by anybody. */
  readonly retryable: boolean
  /** `unknown`: it may have happened, so only the same id may be sent again. */
  readonly outcome: 'notApplied' | 'unknown'
  readonly cause?: unknown
  /** For `conflict`: the id of the message that holds the key. */
  readonly id?: string
}

export type FaultCode =
  | 'lost'
  | 'full'
  | 'conflict'
  | 'throttled'
  | 'unavailable'
  /** A transaction that somebody has open holds its key or its id, and longer than the caller wanted to wait for that. */
  | 'held'
  | 'notFound'
  | 'denied'
  | 'tooLarge'
  | 'invalid'
  | 'unknown'
