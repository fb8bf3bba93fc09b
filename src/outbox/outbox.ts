import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import type { Fault } from '../model/fault.ts'
import type { MaybePromise } from '../model/maybe-promise.ts'
import type { StuckRows } from '../transport/stuck-rows.ts'
import type { ConnectContext } from '../transport/transport.ts'

/** A table in the user's database for messages that a relay takes to another system. */
export interface OutboxConnector {
  readonly name: string
  connect(context: OutboxContext): Promise<Outbox>
  /** The SQL of every schema version, oldest first, for people whose DBA applies it. Absent without a SQL schema. */
  readonly migrationSql?: () => string
}

/** The outbox is opened as a transport is. */
export type OutboxContext = ConnectContext

export interface Outbox {
  readonly name: string
  readonly databaseId: string
  /** Rows inside the caller's transaction; undefined when `tx` belongs elsewhere. Synchronous clients answer at once. */
  transaction(tx: unknown): MaybePromise<OutboxTransaction | undefined>
  /**
   * Takes up to `max` unsent rows that no other relay holds, hands them to `publish`, and removes those it confirmed.
   * Rows of one ordering key are handed over one after another, by one relay at a time; a failed one keeps the later
   * ones of its key back. A row that failed is handed out again after a growing gap.
   */
  relay(max: number, publish: Publish): Promise<RelayPass>
  /** Unsent rows and the age of the oldest in ms. */
  lag(): Promise<{ readonly rows: number; readonly ageMs: number }>
  /** What the transport did not take. Absent where nobody can decide what becomes of it. */
  readonly stuck?: StuckRows
  /** Calls `listener` about when a transaction of this process that added rows commits; answers how to stop that. */
  readonly onAdded?: (listener: () => void) => () => void
  /** What is wrong and no call would tell, a sentence each; see `Transport.problems`. */
  readonly problems?: () => readonly string[]
  close(): Promise<void>
}

export interface OutboxTransaction {
  /** `add` answers at once (SQLite). */
  readonly synchronous: boolean
  add(queue: string, batch: readonly Envelope[]): MaybePromise<readonly Sent[]>
}

export interface OutboxRow {
  readonly queue: string
  readonly envelope: Envelope
  /** How often this row was handed out before. */
  readonly tries: number
}

export type Publish = (rows: readonly OutboxRow[]) => Promise<readonly Sent[]>

export interface RelayPass {
  readonly taken: number
  readonly published: number
  readonly failed: readonly RelayFailure[]
}

export interface RelayFailure {
  readonly queue: string
  readonly messageId: string
  /** How often the row was handed out, this time included. */
  readonly tries: number
  readonly retryInMs: number
  readonly fault: Fault
}
