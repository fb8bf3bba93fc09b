import type { Clock } from '../model/clock.ts'
import type { DeadLetter } from '../model/dead-letter.ts'
import type { Delivery, Sent, Settled, Settlement } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import type { Fault } from '../model/fault.ts'
import type { AttemptHistory, ErrorClass } from '../model/history.ts'
import type { Logger } from '../model/logger.ts'
import type { MaybePromise } from '../model/maybe-promise.ts'
import type { HaltedKeys } from './halted-keys.ts'
import type { StoredShelf } from './stored-shelf.ts'
import type { Traits } from './traits.ts'

/** Knows how to reach one backend. `postgres({ pool })` returns one; opening it is the runtime's business. */
export interface Connector {
  readonly name: string
  connect(context: ConnectContext): Promise<Transport>
  /** The SQL of every schema version, oldest first, for people whose DBA applies it. Absent without a SQL schema. */
  readonly migrationSql?: () => string
}

export interface ConnectContext {
  /** Ends the attempt to connect, and only that. */
  readonly signal: AbortSignal
  readonly clock: Clock
  /** 0 <= n < 1, for jitter and names. */
  readonly random: () => number
  readonly logger: Logger
  /** `auto` brings the schema up to date; `check` refuses an outdated one. Both refuse a newer one. */
  readonly migrate: 'auto' | 'check'
}

/** A live connection. Batches in, one outcome per item out, no retries inside. */
export interface Transport {
  readonly name: string
  /** What this server, at this version, does by itself. Read once at connect; never changes after. */
  readonly traits: Traits
  /** Same value, same database: effects and acks can commit together. Undefined outside databases. */
  readonly databaseId: string | undefined
  /** Never rejects for one bad item; rejects when the backend is away (see `diagnose`). */
  send(queue: string, batch: readonly Envelope[], options: SendOptions): Promise<readonly Sent[]>
  subscribe(queue: string, options: SubscribeOptions): Promise<Subscription>
  /** Names the fault behind an error that this transport threw. */
  diagnose(error: unknown): Fault
  /** Idempotent, bounded in time, safe while calls are blocked: they reject or answer empty. */
  close(): Promise<void>

  /**
   * What is wrong and no call would tell (a file that was deleted while it is open), a sentence each; `health()` adds
   * them to its reasons. Answers at once.
   */
  readonly problems?: () => readonly string[]
  /**
   * What durability rests on, as the server told it when we connected or looked at the queues last, and what is known against the client
   * that was given: a sentence each; `millrace doctor` shows them.
   */
  readonly facts?: readonly string[]
  /** Of backends that commit positions: how a failed message waits, as the user named it; see `choiceNeeds` of the layers. */
  readonly retry?: 'hold' | 'park'
  /**
   * The same backend for queues whose messages have ordering keys, where that takes another layout and other traits (RabbitMQ:
   * lanes); `by-order` of the layers makes one of both. It closes with this one. Absent: `traits.order` is for all queues.
   */
  readonly ordered?: Transport
  readonly topology: Topology
  readonly browse?: Browse
  readonly shelf?: Shelf
  /** Makes room in a full queue at the cost of what waits. Absent where the backend cannot remove it. */
  readonly shed?: (queue: string, options: ShedOptions) => Promise<number>
  /** Where `onDead: 'halt-key'` can be kept. */
  readonly haltedKeys?: HaltedKeys
  /**
   * A place for dead letters with the backend itself, where moving a message there and acking it are two steps: a layer does
   * both. Absent where `shelf` is there, and where the backend has none.
   */
  readonly letters?: StoredShelf
  /**
   * Our acts inside the caller's open transaction, or undefined when `tx` is none of ours (another kind of client,
   * another database). Answers at once where the client is synchronous (SQLite).
   */
  readonly transaction?: (tx: unknown) => MaybePromise<Transaction | undefined>
}

export interface SendOptions {
  readonly signal: AbortSignal
  /** Store all or nothing: when one item cannot be stored, none is, and each other one answers that fault's code
   * with outcome `notApplied` (traits.atomicBatch). */
  readonly atomic?: boolean
  /**
   * How long it may wait for transactions of others that hold a key or an id of it; then those items answer `held`, all of them with
   * `atomic`, and the others are stored. Absent: less than a call may take; of several items that are not atomic a second.
   */
  readonly lockMs?: number
}

/**
 * What goes first: of the ready ones those of the lowest priority, of these the oldest; then scheduled ones, those that are due last.
 * What is in flight, what comes alone after a crash and what has an ordering key stays.
 */
export interface ShedOptions {
  /** At most so many, at least 1. */
  readonly max: number
  /** None with a higher priority than this. */
  readonly upTo: number
  /** They become dead letters of class `permanent` with this reason, in the same step; absent: they are gone. */
  readonly reason?: string
  readonly signal: AbortSignal
}

/** One consumer's view of one queue. Always pulled: a pushing backend fills a buffer no larger than maxInFlight. */
export interface Subscription {
  /** Answers as soon as there is something, or empty after `waitMs` or on abort. A paused queue answers empty. */
  receive(options: ReceiveOptions): Promise<readonly Delivery[]>
  /**
   * Ok means that the backend confirmed it; `lost` that the delivery is no longer ours; `held` that a transaction of somebody's holds its
   * ordering key: it is still ours, and asked again while it is renewed. No item waits for long for another one.
   */
  settle(batch: readonly Settlement[]): Promise<readonly Settled[]>
  /** Sets the leases of exactly these deliveries to `leaseMs` from now; a lost one also fires its `claim.lost`. */
  readonly renew?: (batch: readonly Delivery[], leaseMs: number) => Promise<readonly Settled[]>
  /** Of backends that commit positions: hands out and fetches nothing of this lane until it goes on. Others are unaffected. */
  readonly pauseLane?: (lane: string, paused: boolean) => void
  resize(maxInFlight: number): void
  /** Releases what is unsettled, uncounted, and fires `claim.lost` before others can receive it. Idempotent. */
  close(): Promise<void>
}

export interface SubscribeOptions {
  readonly group: string
  readonly leaseMs: number
  readonly maxInFlight: number
}

export interface ReceiveOptions {
  /** At least 1. Fewer is normal. */
  readonly max: number
  /** 0 asks once. */
  readonly waitMs: number
  readonly signal: AbortSignal
}

/** What a queue needs from its backend. */
export interface QueueSpec {
  readonly name: string
  readonly owner: string
  /** Ready, scheduled and in flight together; undefined: unbounded. */
  readonly maxDepth: number | undefined
  /** Of the retry policy: a limit of the broker's own below it is refused. */
  readonly attempts?: number
  /** How long retries may take, from ready to done or dead, in ms: a retention of the broker's below it is refused. */
  readonly horizonMs?: number
  /** How long one handler may run, in ms: a limit of the broker's below it is refused. */
  readonly handlerTimeoutMs?: number
  /** Its messages have an ordering key. Of interest where a place has to be made for order (lanes). */
  readonly ordered?: true
  /** The longest wait before a retry, in ms: where a failed message waits in its place, a limit of the broker's below it is refused. */
  readonly retryWaitMs?: number
  /** What a death does to the ordering key of its message. Absent: `continue`. Refused before where `haltedKeys` is absent. */
  readonly onDead?: 'continue' | 'halt-key'
  /** What a level of priority is worth, in ms of waiting; see `ageing.ts`. Absent: a minute. */
  readonly ageingMs?: number
  /** How many levels of priority it has, 2 to 10, where they are queues of the backend (`traits.prioritiesBy`). Absent: one. */
  readonly priorities?: number
}

export interface Topology {
  /** Makes what is missing and updates the spec; harmless when repeated or raced. */
  ensure(queues: readonly QueueSpec[], signal: AbortSignal): Promise<void>
  /**
   * What \`ensure\` would refuse of what is there, a sentence each; makes and changes nothing. Asked when start-up is refused anyhow,
   * so that the user sees all of it at once. Absent where nothing can differ.
   */
  readonly differences?: (
    queues: readonly QueueSpec[],
    signal: AbortSignal,
  ) => Promise<readonly string[]>
}

/** Our acts inside a caller's transaction; they commit or vanish with it. */
export interface Transaction {
  /** Both members answer at once (SQLite); a send must then have happened when the call returns. */
  readonly synchronous: boolean
  /** With `atomic` a batch with a fault leaves nothing behind, and the transaction can go on. */
  send(
    queue: string,
    batch: readonly Envelope[],
    options?: { readonly atomic?: boolean },
  ): MaybePromise<readonly Sent[]>
  /** Acks these deliveries if their leases still hold by the backend's clock at this moment, else `lost`. */
  ack(queue: string, batch: readonly Delivery[]): MaybePromise<readonly Settled[]>
}

/** Numbers of one queue; undefined means that the backend cannot say, which is not zero. */
export interface Gauge {
  /** Ready ones; with those in flight where the backend cannot tell them apart (Kafka). */
  readonly depth: number | undefined
  readonly scheduled: number | undefined
  readonly inFlight: number | undefined
  readonly dead: number | undefined
  /** Age of the oldest ready message in ms; 0 when there is none. */
  readonly ageMs: number | undefined
  readonly paused: boolean
}

export interface StoredMessage {
  readonly envelope: Envelope
  readonly state: 'ready' | 'scheduled' | 'in flight'
  readonly sentAt: number
  readonly readyAt: number
  readonly history: AttemptHistory
}

/** What can be seen and done by hand. What a backend cannot do is absent, and a layer with a store may bring it. */
export interface Browse {
  gauge(queue: string): Promise<Gauge>
  /** Ready, scheduled or in flight; undefined when it is none of these. */
  readonly get?: (queue: string, id: string) => Promise<StoredMessage | undefined>
  /** Removes it, whatever its state; a run in flight loses its claim. False when there is none. */
  readonly cancel?: (queue: string, id: string) => Promise<boolean>
  /** Remembered across restarts and seen by all workers. */
  readonly setPaused?: (queue: string, paused: boolean) => Promise<void>
  /** Removes all ready and scheduled messages; answers how many. */
  readonly purge?: (queue: string) => Promise<number>
}

/** Dead letters that can be listed, fetched and removed by id without being consumed. */
export interface Shelf {
  list(queue: string, options: ShelfListOptions): Promise<ShelfPage>
  get(queue: string, id: string): Promise<DeadLetter | undefined>
  count(queue: string, filter: ShelfFilter): Promise<number>
  /**
   * Moves back to the queue in one step: ready at once, id, keys and payload kept, history restarted. Answers the ids
   * that moved. Written to the audit log in the same step. Never refused for capacity.
   */
  redrive(queue: string, ids: readonly string[], audit: AuditNote): Promise<readonly string[]>
  /** Removes for good, with an audit entry in the same step. Answers the ids that were there. */
  discard(queue: string, ids: readonly string[], audit: AuditNote): Promise<readonly string[]>
  /** Newest first. */
  audit(queue: string, limit: number): Promise<readonly AuditEntry[]>
}

export interface ShelfFilter {
  readonly errorClass?: ErrorClass
  /** Dead before or at this epoch ms. */
  readonly deadBefore?: number
}

export interface ShelfListOptions extends ShelfFilter {
  readonly limit: number
  /** From the page before; opaque. */
  readonly cursor?: string
  /**
   * `false`: nobody will look at the bodies, nor at fair keys. Those that lie elsewhere need not be fetched; letters may come without
   * both, where reading them costs. Default true.
   */
  readonly bodies?: boolean
}

export interface ShelfPage {
  /** Newest first, by `deadAt`, then id. With bodies they may be fewer than `limit` and not the last, so that a page has its bound. */
  readonly items: readonly DeadLetter[]
  readonly cursor: string | null
}

export interface AuditNote {
  /** Who asked: `api`, `cli`, a user's name. */
  readonly actor: string
  readonly reason: string
}

export interface AuditEntry extends AuditNote {
  readonly at: number
  readonly act: 'redrive' | 'discard' | 'skip'
  readonly queue: string
  readonly messageId: string
}

/** Takes a transport with weaker traits, gives one with stronger traits, and says so in `traits`. */
export type Layer = (inner: Transport) => Transport
