import type { AttemptRecord, ErrorClass } from '../model/history.ts'

/** The one model behind CLI, HTTP and dashboard. `queue` is a name or a definition. */
export interface Admin {
  /** What the backend does by itself, and who brings the rest. */
  backend(): BackendView
  stats(queue: QueueRef): Promise<QueueStats>
  /**
   * How many workers a queue needs, and why (Little's law). Handlers are measured by the workers; with a store by all of them together,
   * else by this process alone.
   */
  scale(queue: QueueRef, options?: ScaleOptions): Promise<ScaleView>
  /** How much of its `concurrencyLimit` is taken now, by all workers that share it; null when the queue has none. */
  slots(queue: QueueRef): Promise<SlotsView | null>
  pause(queue: QueueRef): Promise<void>
  /** Also lets consumers go on that their kill switch stopped: in this process, and with a store in all. */
  resume(queue: QueueRef): Promise<void>
  /**
   * Throws away all that is ready or scheduled, without a trace but a line in the log. What is in flight is handled, dead letters stay, and
   * keys that were given at the sends stay taken for `dedupe.windowMs`. Memory, SQLite, Postgres and Redis.
   * @throws MILLRACE_BACKEND_FAULT on other backends
   */
  purge(queue: QueueRef): Promise<PurgeResult>
  readonly messages: {
    /** Ready, scheduled, in flight or dead; null when there is none. */
    get(queue: QueueRef, id: string): Promise<MessageView | null>
    /** Removes a message that is not dead yet; a run in flight is told by its signal. False when there was none. */
    cancel(queue: QueueRef, id: string): Promise<boolean>
  }
  /** Circuit breakers of the downstreams that a queue names; shared by all workers of the store, or of this process alone. */
  readonly breakers: {
    /** Those that are open, held by hand, or have failed lately; of all others nothing is remembered. */
    list(queue: QueueRef): Promise<readonly BreakerView[]>
    /** Held open: nothing for this downstream runs until `auto` or `close`. */
    open(queue: QueueRef, downstream: string): Promise<void>
    /** Held closed: everything runs, whatever fails. */
    close(queue: QueueRef, downstream: string): Promise<void>
    /** It decides by itself again, and begins closed. */
    auto(queue: QueueRef, downstream: string): Promise<void>
  }
  readonly deadLetters: {
    list(queue: QueueRef, options?: DeadLetterListOptions): Promise<DeadLetterPage>
    show(queue: QueueRef, id: string): Promise<DeadLetterView | null>
    /**
     * Under `onDead: 'continue'` out of order: the keys of what died went on, so it comes after what was sent of its key meanwhile.
     * Waits while the queue is full, without end but for `signal`. A dead letter that halts its ordering key does not: it goes to the
     * front of its key all the same, and the queue holds one more than `maxDepth`.
     */
    redrive(queue: QueueRef, what: RedriveSelection): Promise<RedriveResult>
    discard(queue: QueueRef, what: DiscardSelection): Promise<DiscardResult>
    audit(queue: QueueRef, options?: { readonly limit?: number }): Promise<readonly AuditView[]>
  }
  /** Messages in the outbox that the transport did not take: each keeps the later ones of its ordering key back. */
  readonly outbox: {
    list(queue: QueueRef, options?: StuckListOptions): Promise<StuckPage>
    /** The relay tries them at once, not at the end of their gap. */
    retry(queue: QueueRef, what: StuckSelection): Promise<StuckResult>
    /** Throws them away for good; what waits behind them goes on. */
    discard(queue: QueueRef, what: DiscardSelection): Promise<StuckResult>
    audit(queue: QueueRef, options?: { readonly limit?: number }): Promise<readonly AuditView[]>
  }
  /** Ordering keys that stand still, of queues with `onDead: 'halt-key'`. */
  readonly keys: {
    list(queue: QueueRef, options?: HaltedKeyListOptions): Promise<HaltedKeyPage>
    /** Null when the key is not halted. */
    show(queue: QueueRef, key: string): Promise<HaltedKeyView | null>
    /**
     * Redrives the dead letters that halted them, to the front of their keys, which go on then. Also in a full queue, which holds one
     * more than `maxDepth` for each of them.
     */
    resume(queue: QueueRef, what: KeySelection): Promise<KeysMoved>
    /** Lets them go on with the next message; the dead letters stay where they are, and a later redrive comes out of order. */
    skip(queue: QueueRef, what: KeySelection): Promise<KeysMoved>
  }
}

export interface StuckListOptions {
  /** 1 to 500. Default 50. */
  readonly limit?: number
  readonly cursor?: string | null
}

export interface StuckPage {
  /** The oldest first. */
  readonly items: readonly StuckView[]
  readonly cursor: string | null
}

export interface StuckView {
  readonly messageId: string
  readonly queue: string
  readonly orderingKey: string | undefined
  readonly tries: number
  /** Epoch ms. */
  readonly addedAt: number
  readonly nextTryAt: number
  /** Why the last try was not taken: `conflict`, `tooLarge: …`; redacted. Undefined when the relay that tried died, or was of a version that kept none. */
  readonly lastError: string | undefined
}

export interface StuckSelection {
  readonly ids: readonly string[]
}

export interface StuckResult {
  /** The ids that were stuck. */
  readonly done: readonly string[]
  /** Not stuck: taken, never tried, on their way just now, or unknown. */
  readonly notFound: readonly string[]
}

export interface HaltedKeyListOptions {
  /** 1 to 500. Default 50. */
  readonly limit?: number
  readonly cursor?: string | null
}

export interface HaltedKeyPage {
  /** By key, ascending. */
  readonly items: readonly HaltedKeyView[]
  readonly cursor: string | null
}

export interface HaltedKeyView {
  readonly key: string
  readonly queue: string
  /** The dead letter that halted it: `deadLetters.show` has its reason. */
  readonly messageId: string
  /** Epoch ms. */
  readonly haltedAt: number
  /** How many messages wait behind it. */
  readonly waiting: number
}

export interface KeySelection {
  readonly keys: readonly string[]
  /** Also where the dead letter is older than the inbox remembers: its effect may happen a second time. For `resume`. */
  readonly force?: boolean
  readonly actor?: string
  /** Kept in the audit log. */
  readonly reason?: string
}

export interface KeysMoved {
  readonly moved: readonly string[]
  /** Not halted. */
  readonly notFound: readonly string[]
}

export type QueueRef = string | { readonly name: string }

export interface BackendView {
  readonly name: string
  /** Undefined when the app has none. */
  readonly store: string | undefined
  /** What a confirmed message survives: the end of a process, of a machine's power, of a machine. */
  readonly durability: 'process' | 'disk' | 'replicated'
  /** What that rests on, as the server told it at the start, a sentence each; empty where it tells nothing. */
  readonly facts: readonly string[]
  readonly abilities: readonly {
    readonly need: string
    /** `nobody`: it needs a store, and the app has none. */
    readonly from: 'backend' | 'layer' | 'store' | 'nobody'
    readonly how: string
  }[]
  /** Where payloads above `aboveBytes` lie, and for how long; undefined when the app has no claim check. */
  readonly claimCheck:
    | {
        readonly blobs: string
        readonly aboveBytes: number
        readonly maxBytes: number
        readonly keepMs: number
      }
    | undefined
  /** What is allowed and may not be meant, a sentence each; `start` warns of it. */
  readonly notes: readonly string[]
  /** What is wrong and no call would tell, a sentence each. */
  readonly problems: readonly string[]
}

/** Numbers of one queue. Undefined is not zero: a broker cannot say it. Memory, SQLite and Postgres know all of them. */
export interface QueueStats {
  readonly queue: string
  readonly owner: string
  /** Ready messages; on Kafka with those in flight, which it does not tell apart. */
  readonly depth: number | undefined
  readonly inFlight: number | undefined
  readonly scheduled: number | undefined
  readonly dead: number | undefined
  /** Age of the oldest ready message in ms; 0 when there is none. */
  readonly ageMs: number | undefined
  readonly paused: boolean
  readonly capacity: number | 'unbounded'
}

export interface SlotsView {
  readonly queue: string
  /** Messages that run, of workers that died up to half a minute ago, too. */
  readonly held: number
  /** Undefined: no limit but that of each key. */
  readonly max: number | undefined
  readonly maxPerKey: number | undefined
  /** The 50 that run most. */
  readonly keys: readonly { readonly key: string; readonly held: number }[]
}

/** What is wanted, and what the caller knows better than was measured. */
export interface ScaleOptions {
  /** Handlers side by side in one worker, 1 to 10,000. Default: those of this app's worker of the queue, else 10. */
  readonly concurrency?: number
  /** What waits now must be gone within this time, in ms, 1,000 to 86,400,000. Default 60,000. */
  readonly clearWithinMs?: number
  /** Share of the time that a slot is busy, 0.1 to 1. Default 0.8: near 1 waiting grows without bound. */
  readonly utilisation?: number
  /** Workers at least, 0 to 10,000. Default 0. */
  readonly min?: number
  /** Workers at most, 1 to 10,000. Default 10,000. */
  readonly max?: number
  /** Look twice, so far apart, to see whether the queue grows; in ms, 0 to 60,000. Default 0: since earlier calls. */
  readonly watchMs?: number
  /** How long a handler takes, in ms, 0 to 86,400,000. Default: as measured. */
  readonly handlerMs?: number
  /** Messages that come per second. Default: handlers that ended per second, and what the queue grew; needs a store. */
  readonly arrivalsPerSecond?: number
  /** Ends the wait of `watchMs`; then it rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** Undefined is not zero: nobody can say it. */
export interface ScaleView {
  readonly queue: string
  /** Workers that are needed. Undefined when too little is known; `why` says what. */
  readonly workers: number | undefined
  /** Handlers side by side that are needed, in all workers together. */
  readonly slots: number | undefined
  /** A sentence for each step of the sum. */
  readonly why: readonly string[]
  readonly depth: number | undefined
  readonly inFlight: number | undefined
  readonly ageMs: number | undefined
  readonly paused: boolean
  readonly handlerMs: number | undefined
  readonly arrivalsPerSecond: number | undefined
  /** Who measured the handlers: all processes, through the store; this one alone; nobody. */
  readonly measuredIn: 'fleet' | 'process' | 'nowhere'
}

export interface BreakerView {
  readonly queue: string
  readonly downstream: string
  readonly phase: 'closed' | 'open' | 'half-open'
  /** By hand; undefined when it decides by itself. */
  readonly held: 'open' | 'closed' | undefined
  /** Of the window while it is closed, else of when it opened. */
  readonly failed: number
  readonly runs: number
  /** When one message is tried, epoch ms. */
  readonly probeAt: number | undefined
  /** Times that it opened without having closed. */
  readonly opens: number
  /** It asked for a pause until then, epoch ms; few messages go at first afterwards. */
  readonly pausedUntil: number | undefined
}

export interface MessageView {
  readonly id: string
  readonly queue: string
  readonly state: 'ready' | 'scheduled' | 'in flight' | 'dead'
  readonly payload: unknown
  /** As of a dead letter. */
  readonly bodyBase64?: string
  readonly headers: Readonly<Record<string, string>>
  readonly idempotencyKey: string
  readonly attempt: number
  readonly priority: number
  readonly sentAt: number
  readonly readyAt: number | undefined
  readonly attempts: readonly AttemptRecord[]
}

export interface DeadLetterListOptions {
  readonly errorClass?: ErrorClass
  /** 1 to 500. Default 50. */
  readonly limit?: number
  readonly cursor?: string | null
}

export interface DeadLetterPage {
  /** Newest first. Fewer than the limit, with a cursor, where their bodies are more than 16 MiB. */
  readonly items: readonly DeadLetterView[]
  readonly cursor: string | null
}

export interface DeadLetterView {
  readonly id: string
  readonly queue: string
  /** Decoded, not validated: it may be what made the message die. */
  readonly payload: unknown
  /**
   * The stored bytes in base64, where the queue's codec cannot decode them; `payload` is their text then, in which bytes that are no
   * UTF-8 are lost. Absent otherwise. A redrive puts back the bytes.
   */
  readonly bodyBase64?: string
  readonly headers: Readonly<Record<string, string>>
  readonly idempotencyKey: string
  readonly errorClass: ErrorClass
  readonly reason: string
  readonly attempts: readonly AttemptRecord[]
  readonly owner: string
  readonly sentAt: number
  readonly deadAt: number
  readonly redrives: number
}

export type RedriveSelection = (
  | { readonly ids: readonly string[] }
  | { readonly filter: { readonly errorClass?: ErrorClass; readonly deadBefore?: number } }
) & {
  readonly dryRun?: boolean
  /** At most this many a second; default as fast as the store allows. */
  readonly ratePerSecond?: number
  /** Also what is older than the inbox remembers: its effect may happen a second time. */
  readonly force?: boolean
  readonly actor?: string
  readonly reason?: string
  /** Ends it, also while it waits for room: the answer says how many moved. */
  readonly signal?: AbortSignal
  /** Called after each step. */
  readonly onProgress?: (progress: RedriveResult) => void
  /** Called when it begins to wait for room in a full queue, and again when something moved and it waits anew. */
  readonly onFull?: () => void
}

export interface RedriveResult {
  readonly matched: number
  readonly moved: number
  readonly notFound: readonly string[]
}

export interface DiscardSelection {
  readonly ids: readonly string[]
  /** Kept in the audit log. */
  readonly reason: string
  readonly actor?: string
}

export interface PurgeResult {
  /** How many messages it was. */
  readonly removed: number
}

export interface DiscardResult {
  readonly discarded: number
  readonly notFound: readonly string[]
}

export interface AuditView {
  readonly at: number
  readonly act: 'redrive' | 'discard' | 'skip'
  readonly queue: string
  readonly messageId: string
  readonly actor: string
  readonly reason: string
}
