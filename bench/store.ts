import type { Connector, InboxConnector } from 'millrace'
import type { StoreConnector } from 'millrace/store'

/** What differs between our backends: where messages and keys are kept, and the effect of a handler there. */
export interface Store<Tx> {
  readonly transport: Connector
  /** For what a broker cannot keep; absent where the transport is its own. */
  readonly keeps?: StoreConnector
  readonly inbox: InboxConnector<Tx>
  /** Makes the table of the effects. */
  prepare(): Promise<void>
  /** Synchronous where the inbox needs it. */
  effect(tx: Tx, key: string, note: string): void | Promise<void>
  effects(): Promise<number>
  close(): Promise<void>
}
