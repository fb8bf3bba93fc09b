import { memory } from 'millrace/memory'
import { nats } from 'millrace/nats'
import { type MemoryTx, memoryInbox } from 'millrace/testing'
import type { Store } from './store.ts'

/** Effects are not asked about here: NATS has no transaction to join them to. */
export function natsStore(servers: string): Store<MemoryTx> {
  return {
    transport: nats({ servers }),
    inbox: memoryInbox({ transport: memory() }),
    async prepare() {},
    effect() {},
    effects: async () => 0,
    async close() {},
  }
}
