import '../model/node-version.ts'

export {
  AGEING_MS,
  type LineHead,
  type LineTurn,
  lineTurn,
  standing,
} from '../transport/ageing.ts'
export { type FairSituation, fairPlace } from '../transport/fair-share.ts'
export {
  type AdaptiveConcurrency,
  adaptSlots,
  firstSlots,
  LOOK_EVERY_MS,
  type SlotLook,
  type SlotSettings,
  type SlotState,
} from './adapt-slots.ts'
export {
  type BreakerSettings,
  type BreakerState,
  type BreakerVerdict,
  breakerCounted,
  breakerHeld,
  breakerProbed,
  breakerProbing,
  breakerVerdict,
  CLOSED,
} from './breaker.ts'
export { type DepthLimits, depthLimit, type RetryAfter, retryAfterMs } from './capacity.ts'
export { type CountStep, type CountWindow, counted, countsOf } from './count-window.ts'
export {
  type GateSettings,
  type GateState,
  gateRate,
  gateThrottled,
  gateWaitMs,
} from './gate.ts'
export {
  type KillSwitchEvent,
  type KillSwitchOptions,
  type KillSwitchSettings,
  type KillSwitchState,
  killSwitchAfter,
  killSwitchAt,
  killSwitchSlots,
  RUNNING,
} from './kill-switch.ts'
export { type Measure, measured, type Ran, runsPerSecond } from './measure.ts'
export {
  type BucketLevel,
  bucketTaken,
  type RateLimit,
  turnOf,
} from './rate-limit.ts'
export { type Recommendation, recommend, type ScaleFacts, type ScaleGoal } from './recommend.ts'
