import type { MaybePromise } from '../model/maybe-promise.ts'
import type { ConnectContext } from '../transport/transport.ts'

/** Remembers in the user's database which keys were handled. `Tx` is what the user's effect receives. */
export interface InboxConnector<Tx> {
  readonly name: string
  connect(context: InboxContext): Promise<Inbox<Tx>>
  /** The SQL of every schema version, oldest first, for people whose DBA applies it. Absent without a SQL schema. */
  readonly migrationSql?: () => string
}

export interface InboxContext extends ConnectContext {
  /** Longest time that a duplicate can be late, computed from the queues; a shorter `ttlMs` is refused. */
  readonly neededTtlMs: number
}

export interface InboxKey {
  readonly queue: string
  readonly key: string
}

export interface Inbox<Tx> {
  readonly name: string
  /** Same value as the transport's: the ack joins the effect's transaction. */
  readonly databaseId: string
  /** How long a key is remembered, in ms. */
  readonly ttlMs: number
  /** `sync`: the effect must be a synchronous function (SQLite). */
  readonly effects: 'sync' | 'async'
  /** Which of these were handled, one entry per key, in order. */
  seen(keys: readonly InboxKey[]): Promise<readonly boolean[]>
  /**
   * One short transaction: the effect, then the key's record, then `last` (fence and ack). Commits when the key was
   * new and `last` answered true; else rolls everything back. An error of the effect rolls back and is thrown as it is.
   */
  run<T>(key: InboxKey, work: InboxWork<Tx, T>): Promise<InboxOutcome<T>>
  /** Handled without a transaction of ours: remembers the keys on their own. */
  record(keys: readonly InboxKey[]): Promise<void>
  /** Removes up to `max` expired keys; answers how many. */
  prune(max: number): Promise<number>
  /** What is wrong and no call would tell, a sentence each; see `Transport.problems`. */
  readonly problems?: () => readonly string[]
  close(): Promise<void>
}

export interface InboxWork<Tx, T> {
  /** The longest that the transaction may stay open, in ms: a stopped process blocks nobody for longer. */
  readonly leaseMs: number
  readonly effect: (tx: Tx) => MaybePromise<T>
  /** Asked when the transaction may begin, which may be long after the call: true, and nothing is begun, and the claim counts as lost. */
  readonly isOver?: () => boolean
  /** Runs after the key's record, inside the transaction; false when the claim is lost. */
  readonly last: (tx: Tx) => MaybePromise<boolean>
}

export type InboxOutcome<T> =
  | { readonly kind: 'committed'; readonly value: T }
  /** Another run had recorded the key; nothing of this one was kept. */
  | { readonly kind: 'duplicate' }
  /** The claim was lost; nothing was kept. */
  | { readonly kind: 'lost' }
