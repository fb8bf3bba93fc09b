export { type MemoryConnector, type MemoryOptions, memory } from './memory.ts'
export type { MemoryTransaction } from './transaction.ts'
