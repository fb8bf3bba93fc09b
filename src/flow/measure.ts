/**
 * What the handlers of a queue did lately: sums in which what is a minute old counts half. Small, the same for one process and for
 * a fleet, and two of them need no list of who is there.
 */
export interface Measure {
  /** Epoch ms of the last change. */
  readonly at: number
  /** When it began: a young one has not seen a whole minute yet. */
  readonly since: number
  readonly runs: number
  readonly busyMs: number
  /** The last average that rested on a run; it outlives the sums, so that an idle queue still knows. */
  readonly handlerMs: number | undefined
}

/** Handlers that ended, and how long they took together. */
export interface Ran {
  readonly runs: number
  readonly busyMs: number
}

const HALF_LIFE_MS = 60_000
/** Below this share of a run nothing is left to divide by. */
const RUNS_MIN = 0.01

/** Adds what ran since. A clock that went back (another machine's) ages nothing. */
export function measured(before: Measure | undefined, ran: Ran, now: number): Measure {
  const at = Math.max(now, before?.at ?? now)
  const kept = before === undefined ? 0 : halved(at - before.at)
  const runs = (before?.runs ?? 0) * kept + ran.runs
  const busyMs = (before?.busyMs ?? 0) * kept + ran.busyMs
  const handlerMs = runs >= RUNS_MIN ? busyMs / runs : before?.handlerMs
  return { at, since: before?.since ?? now, runs, busyMs, handlerMs }
}

/** Runs that ended per second, lately. */
export function runsPerSecond(measure: Measure, now: number): number {
  const at = Math.max(now, measure.at)
  const left = measure.runs * halved(at - measure.at)
  // One second at least: a first run is no rate of thousands.
  const seen = 1 - halved(Math.max(1_000, at - measure.since))
  return (left * Math.LN2 * 1_000) / HALF_LIFE_MS / seen
}

function halved(ageMs: number): number {
  return 2 ** (-ageMs / HALF_LIFE_MS)
}
