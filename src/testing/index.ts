import '../model/node-version.ts'

export {
  type MemoryDatabase,
  type MemoryInboxOptions,
  type MemoryTx,
  memoryInbox,
  type SharedInboxOptions,
} from '../inbox/memory-inbox.ts'
export { type FaultyCall, type FaultyOptions, faulty, type Mishap } from '../layers/faulty.ts'
export type { Mishaps } from './mishaps.ts'
export { seededRandom } from './seeded-random.ts'
export type { SettledOptions } from './settled.ts'
export { type TestApp, type TestAppOptions, testApp } from './test-app.ts'
export { type VirtualClock, type VirtualClockOptions, virtualClock } from './virtual-clock.ts'
