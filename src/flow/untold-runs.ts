import { type CountWindow, counted, countsOf } from './count-window.ts'

/** Runs of this process that nobody else was told of yet, by downstream. */
export interface UntoldRuns {
  count(downstream: string, outcome: 'ok' | 'failed', now: number): void
  /** Those that others should know: something failed, or it is a downstream that they watch. */
  worthTelling(
    isWatched: (downstream: string) => boolean,
    now: number,
  ): ReadonlyMap<string, CountWindow>
  told(downstreams: Iterable<string>): void
  /** They were not told after all. */
  back(runs: ReadonlyMap<string, CountWindow>): void
}

/** Downstreams; the oldest go first. */
const UNTOLD_MAX = 1_000

export function untoldRuns(windowMs: number): UntoldRuns {
  const runs = new Map<string, CountWindow>()
  return {
    count: (downstream, outcome, now) => {
      const before = runs.get(downstream) ?? []
      runs.delete(downstream)
      runs.set(downstream, counted(before, { [outcome]: 1 }, now, windowMs))
      const [oldest] = runs.keys()
      if (runs.size > UNTOLD_MAX && oldest !== undefined) runs.delete(oldest)
    },
    worthTelling: (isWatched, now) =>
      new Map(
        [...runs].filter(
          ([downstream, window]) =>
            isWatched(downstream) || (countsOf(window, now, windowMs)['failed'] ?? 0) > 0,
        ),
      ),
    told: (downstreams) => {
      for (const downstream of downstreams) runs.delete(downstream)
    },
    back: (untold) => {
      // What came meanwhile is newer, and a lost count of a moment decides nothing.
      for (const [downstream, window] of untold) {
        if (!runs.has(downstream)) runs.set(downstream, window)
      }
    },
  }
}
