import type { Clock } from '../model/clock.ts'
import type { Transport } from '../transport/transport.ts'

/** What the author of a transport provides, so that the kit can run on it. */
export interface Harness {
  /** How results name the backend, with its version: `postgres 18`. */
  readonly name: string
  /** A new, independent connection to the same backend; the kit closes it. */
  connect(): Promise<Transport>
  /** Ensures a queue that nobody used before (`topology.ensure`) and answers its name. */
  freshQueue(options?: FreshQueueOptions): Promise<string>
  /** Present when the time of the backend can be moved; absent: the kit really waits. */
  readonly time?: MovableTime
  /** Multiplies every deadline of the kit: 1 for a local backend. */
  readonly slow: number
  /** The smallest lease that the backend keeps reliably, in ms; 500 for a local server. */
  readonly leaseMs: number
  /** Opens a transaction on the user's own connection; present where `transport.transaction` is. */
  readonly transaction?: () => Promise<UserTransaction>
  /** Values that look like a transaction but belong to another client or database. */
  readonly foreignTransactions?: () => readonly unknown[]
  /**
   * Makes the holder of this connection disappear as a killed process would. Absent: the kit falls
   * silent, no more.
   */
  readonly vanish?: (transport: Transport) => Promise<void>
  /** Takes the backend away and brings it back. */
  readonly outage?: Outage
  /** Frees everything. The kit never calls it: give it to the `after` of your test runner. */
  dispose(): Promise<void>
}

export interface FreshQueueOptions {
  /** Default: unbounded. */
  readonly maxDepth?: number
  /** Default `team-conformance`. */
  readonly owner?: string
  /** Asked for only where the transport has `haltedKeys`. Default `continue`. */
  readonly onDead?: 'continue' | 'halt-key'
  /** Asked for only where there are priorities. Default: the transport's. */
  readonly ageingMs?: number
}

/** Who owns a fresh queue when nothing else was said. */
export const DEFAULT_OWNER = 'team-conformance'

/** The clock that the transport was given; `virtualClock` of millrace/testing is one. */
export interface MovableTime extends Clock {
  /** Moves time and lets everything that falls due happen. */
  advance(ms: number): Promise<void>
}

export interface UserTransaction {
  /** What a user would pass as `tx`. */
  readonly tx: unknown
  commit(): Promise<void>
  rollback(): Promise<void>
}

export interface Outage {
  cut(): Promise<void>
  restore(): Promise<void>
}
