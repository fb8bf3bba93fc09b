import { memory } from 'millrace/memory'
import { redis } from 'millrace/redis'
import { type MemoryTx, memoryInbox } from 'millrace/testing'
import type { Store } from './store.ts'

/** Effects are not asked about here: Redis has no transaction to join them to. */
export function redisStore(url: string): Store<MemoryTx> {
  return {
    transport: redis({ url }),
    inbox: memoryInbox({ transport: memory() }),
    async prepare() {},
    effect() {},
    effects: async () => 0,
    async close() {},
  }
}
