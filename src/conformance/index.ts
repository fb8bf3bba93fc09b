import '../model/node-version.ts'

export { type ConformanceOptions, conformance } from './conformance.ts'
export {
  DEFAULT_OWNER,
  type FreshQueueOptions,
  type Harness,
  type MovableTime,
  type Outage,
  type UserTransaction,
} from './harness.ts'
export type { Family, Promised, Subject } from './promise.ts'
export type { Deviation, RegisterOptions } from './register.ts'
export { type AboutBackend, guaranteesTable, type Result } from './report.ts'
export type { Depth, Scope } from './scope.ts'
export { type StoreConformanceOptions, storeConformance } from './store/conformance.ts'
export type { StoreHarness } from './store/harness.ts'
export type { StoreScope, StoreSubject } from './store/scope.ts'
