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
  /** Of an item among others: a transaction of somebody's holds its key. Sent alone it waits for the end of that. */
  | 'held'
  | 'notFound'
  | 'denied'
  | 'tooLarge'
  | 'invalid'
  | 'unknown'
