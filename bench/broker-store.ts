import type { Connector } from 'millrace'
import { memory } from 'millrace/memory'
import { sqliteStore } from 'millrace/store'
import { type MemoryTx, memoryInbox } from 'millrace/testing'
import type { Store } from './store.ts'

export type BrokerStore = Store<MemoryTx>

/**
 * Effects are not asked about on brokers: none has a transaction to join them to.
 *
 * @param file of the store that keeps what the broker cannot, as in the examples; undefined where it needs none
 */
export function brokerStore(transport: Connector, file?: string): BrokerStore {
  return {
    transport,
    ...(file === undefined ? {} : { keeps: sqliteStore({ file }) }),
    inbox: memoryInbox({ transport: memory() }),
    async prepare() {},
    effect() {},
    effects: async () => 0,
    async close() {},
  }
}
