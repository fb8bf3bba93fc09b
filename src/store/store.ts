import type { Fault } from '../model/fault.ts'
import type { ConnectContext, Connector } from '../transport/transport.ts'
import type { Buckets } from './buckets.ts'
import type { Counters } from './counters.ts'
import type { DelayedMessages } from './delayed-messages.ts'
import type { Journal } from './journal.ts'
import type { KeyMemory } from './key-memory.ts'
import type { Leases } from './leases.ts'
import type { Slots } from './slots.ts'
import type { StoredShelf } from './stored-shelf.ts'
import type { SwappedStates } from './swapped-states.ts'

/** Knows how to reach a store. `postgresStore({ pool })` returns one; opening it is the runtime's business. */
export interface StoreConnector {
  readonly name: string
  connect(context: ConnectContext): Promise<Store>
  /** The SQL of every schema version, oldest first, for people whose DBA applies it. Absent without a SQL schema. */
  readonly migrationSql?: () => string
}

/** A transport whose own server or database can be the store, too: an app that asks for one need not be given another. */
export interface StoringConnector extends Connector {
  /** Where the transport keeps its queues, with connections of its own. */
  ownStore(): StoreConnector
}

/**
 * Keeps what a broker cannot: one for all workers of an app. Nothing in it knows a broker. Every act is atomic by itself,
 * and what it confirmed is there for every other connection at once. Ids, keys and fingerprints have 1 to 255 characters,
 * names (of queues, leases, holders, pools, buckets, counters, states) 1 to 512, none with a NUL; a call beyond a bound rejects with
 * MILLRACE_INVALID_OPTIONS and has done nothing.
 */
export interface Store {
  readonly name: string
  readonly traits: StoreTraits
  readonly keys: KeyMemory
  readonly delayed: DelayedMessages
  readonly shelf: StoredShelf
  readonly journal: Journal
  readonly leases: Leases
  readonly slots: Slots
  readonly buckets: Buckets
  readonly counters: Counters
  readonly states: SwappedStates
  /** Removes up to `max` rows (of keys, journal, leases, slots, buckets and counters) whose time has passed; answers how many. Expired rows are never seen before that either. */
  prune(max: number): Promise<number>
  /** Names the fault behind an error that this store threw. */
  diagnose(error: unknown): Fault
  /** What is wrong and no call would tell, a sentence each; see `Transport.problems`. */
  readonly problems?: () => readonly string[]
  /** Idempotent, bounded in time, safe while calls are blocked. */
  close(): Promise<void>
}

export interface StoreTraits {
  /** Whose clock decides when something is due or over. */
  readonly clock: 'caller' | 'server'
  readonly durability: 'process' | 'disk' | 'replicated'
  /** What has ended takes room until it is pruned, or the backend removes it itself and `prune` finds nothing. */
  readonly ends: 'by prune' | 'by itself'
  readonly limits: {
    /** Largest body of one message. */
    readonly bodyBytes: number
    /** Most items in one call of `keys`, `delayed`, `shelf`, `journal` or `slots`; more are refused. */
    readonly batch: number
  }
}
