import { retryHorizonMs } from '../model/retry.ts'
import type { AnyQueue } from './queue.ts'
import { GRACE_MS } from './worker-deps.ts'

const DAY_MS = 86_400_000

/**
 * The longest time that a duplicate can be late: every retry and throttle at its longest (see `retryHorizonMs`), every run at its longest, a day
 * in reserve, and the time in which dead letters are redriven.
 */
export function neededInboxTtlMs(resolved: {
  readonly queues: readonly AnyQueue[]
  readonly redriveWindowMs: number
}): number {
  return Math.max(...resolved.queues.map(horizonMsOf)) + resolved.redriveWindowMs
}

/** The longest that a message lives before it is done or dead, once it is ready: every retry, throttle and run at its longest, and a day in reserve. */
export function horizonMsOf({ retry, handlerTimeoutMs }: AnyQueue): number {
  return retryHorizonMs(retry) + retry.attempts * (handlerTimeoutMs + GRACE_MS) + DAY_MS
}
