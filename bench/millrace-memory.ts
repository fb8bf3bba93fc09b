import { memory } from 'millrace/memory'
import { type MemoryTx, memoryInbox } from 'millrace/testing'
import type { Store } from './store.ts'

export function memoryStore(): Store<MemoryTx> {
  const transport = memory()
  const rows = new Map<string, string>()
  return {
    transport,
    inbox: memoryInbox({ transport }),
    async prepare() {},
    effect: (_tx, key, note) => void rows.set(key, note),
    effects: async () => rows.size,
    async close() {},
  }
}
