import type { Clock } from '../model/clock.ts'

/** True when `work` settled within `ms`, false when not; never rejects. What goes on is left alone. */
export function bounded(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.after(ms, () => resolve(false))
    const done = (): void => {
      cancel()
      resolve(true)
    }
    work.then(done, done)
  })
}
