/** What a backend does by itself. Facts are traits, abilities are optional members of the transport. */
export interface Traits {
  /** `upTo`: only a position can be committed. */
  readonly settles: 'each' | 'upTo'
  /**
   * An ack that was answered ok may be undone when its holder's connection dies right behind it: the message comes
   * again, and is never lost. Absent: it stays acked.
   */
  readonly acksMayBeUndone?: true
  /**
   * A release that was not answered ok may have left a copy beside the message: then both come, under one id. So may one with a
   * delay, when whoever moves the copy at its time vanishes over it. Absent: it left one message.
   */
  readonly releaseMayDouble?: true
  readonly claim:
    | { readonly kind: 'lease'; readonly maxMs: number }
    | { readonly kind: 'session' }
    | { readonly kind: 'assignment' }
  readonly release: 'delayed' | 'immediate' | 'none'
  readonly uncountedRelease: boolean
  readonly counts: 'deliveries' | 'redelivered' | 'none'
  /** Attempts are stored with the message; elsewhere a layer carries them in a header. */
  readonly keepsHistory: boolean
  /**
   * A vanished holder is one counted attempt, and its messages come back alone. `repeated`: so it is for messages that were
   * handed out before; a holder that vanished with a message at its first handing out is not seen.
   */
  readonly countsCrashes: boolean | 'repeated'
  /** `perKey`: of one ordering key the messages come in the order sent; with `settles: 'each'` one at a time, a failed one before its successors. */
  readonly order: 'none' | 'perKey' | 'perQueue'
  readonly delay: { readonly maxMs: number } | 'none'
  /** A delayed message with an ordering key is refused, because it would leave its place. Absent: its key waits for it. */
  readonly delayLeavesOrder?: true
  /** An id that is stored is not stored again. Without, the same id sent again is a second message with this id. */
  readonly remembersIds: boolean
  /** `any`: keys with any window; a number: the backend's own fixed window. */
  readonly dedupe: { readonly windowMs: number | 'any' } | 'none'
  readonly deadLetters: 'native' | 'none'
  /** How many levels; 1 means none. */
  readonly priorities: number
  /** `queues`: only a queue that names its levels has them, up to `priorities`, each as a queue of the backend. Absent: every queue has them. */
  readonly prioritiesBy?: 'queues'
  /** Messages of one priority that have a fair key take turns by key; see `fair-share.ts`. Absent: such a message is refused. */
  readonly fairness?: true
  /** `exact`: send answers `full` at the limit; `sampled`: the runtime counts from `browse.gauge`. */
  readonly capacity: 'exact' | 'sampled'
  /** A batch sent with `atomic` is stored whole or not at all. */
  readonly atomicBatch: boolean
  /** Whose clock decides due times and leases. */
  readonly clock: 'caller' | 'server'
  readonly durability: 'process' | 'disk' | 'replicated'
  readonly limits: {
    readonly bodyBytes: number
    /** Larger bodies, up to `bodyBytes`, lie in the blob store of a claim check. Absent: there is none. */
    readonly inlineBytes?: number
    readonly sendBatch: number
    readonly receiveBatch: number
    readonly settleBatch: number
  }
}
