import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import type { InboxContext } from '../inbox/inbox.ts'
import type { MaybePromise } from '../model/maybe-promise.ts'

/** A table in the user's database for messages that a relay takes to another system. */
export interface OutboxConnector {
  readonly name: string
  connect(context: Omit<InboxContext, 'neededTtlMs'>): Promise<Outbox>
}

export interface Outbox {
  readonly name: string
  readonly databaseId: string
  /** Rows inside the caller's transaction; undefined when `tx` belongs elsewhere. Synchronous clients answer at once. */
  transaction(tx: unknown): MaybePromise<OutboxTransaction | undefined>
  /**
   * Takes up to `max` unsent rows that no other relay holds, hands them to `publish`, and removes those it confirmed,
   * in one transaction. Rows of one ordering key are handed over in commit order and by one relay at a time.
   */
  relay(max: number, publish: Publish): Promise<RelayPass>
  /** Unsent rows and the age of the oldest in ms. */
  lag(): Promise<{ readonly rows: number; readonly ageMs: number }>
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
}
