import '../../model/node-version.ts'

export { type MemoryConnector, type MemoryOptions, memory } from './memory.ts'
export type { MemoryTransaction } from './transaction.ts'
