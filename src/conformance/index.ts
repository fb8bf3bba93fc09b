import '../model/node-version.ts'

export { type ConformanceOptions, conformance, type Deviation } from './conformance.ts'
export {
  DEFAULT_OWNER,
  type FreshQueueOptions,
  type Harness,
  type MovableTime,
  type Outage,
  type UserTransaction,
} from './harness.ts'
export type { Family, Promised, Subject } from './promise.ts'
export { guaranteesTable, type Result } from './report.ts'
export type { Depth, Scope } from './scope.ts'
