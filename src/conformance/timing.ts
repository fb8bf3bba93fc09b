import { type Clock, pause, systemClock } from '../model/clock.ts'
import type { Harness } from './harness.ts'

/** How a test lets time go by. */
export interface Timing {
  /** Time goes by: moved where it can be moved, waited for elsewhere. */
  passes(ms: number): Promise<void>
  /** Lets every lease of `leaseMs` run out. */
  leaseRunsOut(): Promise<void>
  /**
   * Waits for a condition with a deadline of `withinMs` (times the harness's `slow`); time goes by
   * meanwhile.
   */
  until(what: string, condition: () => Promise<boolean> | boolean, withinMs?: number): Promise<void>
  /** Waits for a promise that needs time to go by. */
  settles<T>(what: string, promise: Promise<T>, withinMs?: number): Promise<T>
}

export type TimedHarness = Pick<Harness, 'time' | 'slow' | 'leaseMs'>

const DEADLINE_MS = 10_000
/** Between two looks, where time is moved; what is real is looked at again after a tenth of the wait so far, within these. */
const STEP_MS = 10
const STEP_MAX_MS = 50
const real: Clock = systemClock()

export function timing(harness: TimedHarness): Timing {
  const passes = (ms: number): Promise<void> =>
    harness.time ? harness.time.advance(ms) : pause(real, ms)
  const { now } = harness.time ?? real
  const stepAfter = (waitedMs: number): number =>
    harness.time ? STEP_MS : Math.min(STEP_MAX_MS, Math.max(STEP_MS, waitedMs / 10))
  const until: Timing['until'] = async (what, condition, withinMs = DEADLINE_MS) => {
    const since = now()
    for (;;) {
      if (await condition()) return
      const waitedMs = now() - since
      if (waitedMs >= withinMs * harness.slow) {
        throw new Error(`gave up after ${withinMs * harness.slow} ms: ${what}`)
      }
      await passes(stepAfter(waitedMs))
    }
  }
  return {
    passes,
    until,
    leaseRunsOut: () => passes(harness.leaseMs + Math.max(50, harness.leaseMs / 10)),
    async settles(what, promise, withinMs) {
      let ended = false
      const end = (): void => {
        ended = true
      }
      promise.then(end, end)
      await until(what, () => ended, withinMs)
      return await promise
    },
  }
}
