import '../model/node-version.ts'

export { type Applied, type LatestOnly, latestOnly } from './latest-only.ts'
export type { VersionedQueue, VersionOptions } from './options.ts'
export { type Reorder, type ReorderOptions, reorder, type Sorted } from './reorder.ts'
export type { Gap } from './version-state.ts'
