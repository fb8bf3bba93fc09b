import '../model/node-version.ts'

export type { BucketRate, Buckets, Taken } from '../store/buckets.ts'
export type { Counters } from '../store/counters.ts'
export type {
  DelayedMessage,
  DelayedMessages,
  DueMessage,
  TakenMessage,
} from '../store/delayed-messages.ts'
export type { Journal, JournalEntry, WrittenEntry } from '../store/journal.ts'
export type { KeyedMessage, KeyMemory, Reservation } from '../store/key-memory.ts'
export type { Lease, Leases } from '../store/leases.ts'
export type {
  HeldSlot,
  SlotAnswer,
  SlotCount,
  SlotLimits,
  SlotRequest,
  Slots,
} from '../store/slots.ts'
export type { Store, StoreConnector, StoreTraits } from '../store/store.ts'
export type { RedrivenLetter, StoredShelf } from '../store/stored-shelf.ts'
export type { SwappedStates, VersionedState } from '../store/swapped-states.ts'
export { memoryStore } from './memory/memory-store.ts'
export {
  type PostgresStoreOptions,
  type PostgresStoreSettings,
  postgresStore,
} from './postgres/postgres-store.ts'
export {
  type RedisStoreOptions,
  type RedisStoreSettings,
  redisStore,
} from './redis/redis-store.ts'
export {
  type SqliteStoreOptions,
  type SqliteStoreSettings,
  sqliteStore,
} from './sqlite/sqlite-store.ts'
