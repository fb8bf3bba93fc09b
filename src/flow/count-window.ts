/** How often each of a few things happened lately, in ten steps of a window. Small and plain. */
export type CountWindow = readonly CountStep[]

export interface CountStep {
  /** Number of the step since the epoch. */
  readonly step: number
  readonly counts: Readonly<Record<string, number>>
}

const STEPS = 10
/** Clocks of two machines differ; more steps than these are no window of ours. */
const STEPS_KEPT = 3 * STEPS
/** By how much they may differ, or a window where that is longer: what is further ahead was counted before a clock was set back. */
const SKEW_MS = 60_000
/** Things counted in one step; what comes beyond is counted as `other`. */
const NAMES_MAX = 20
const OTHER = 'other'

/** Adds what happened at `at`. What is older than the window, or too far ahead of it, is left out. */
export function counted(
  window: CountWindow,
  happened: Readonly<Record<string, number>>,
  at: number,
  windowMs: number,
): CountWindow {
  const step = stepOf(at, windowMs)
  const kept = window.filter(isWithin(step, windowMs))
  const found = kept.find((one) => one.step === step)
  const counts = { ...found?.counts }
  for (const [name, times] of Object.entries(happened)) {
    const isKnown = name in counts || Object.keys(counts).length < NAMES_MAX
    const under = isKnown ? name : OTHER
    counts[under] = (counts[under] ?? 0) + times
  }
  const others = found === undefined ? kept : kept.filter((one) => one !== found)
  return [...others, { step, counts }]
}

/** What two saw, together. */
export function mergedWindows(
  one: CountWindow,
  other: CountWindow,
  now: number,
  windowMs: number,
): CountWindow {
  const steps = new Map<number, Record<string, number>>()
  for (const { step, counts } of [...one, ...other].filter(
    isWithin(stepOf(now, windowMs), windowMs),
  )) {
    const sums = steps.get(step) ?? {}
    for (const [name, times] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + times
    steps.set(step, sums)
  }
  return [...steps].map(([step, counts]) => ({ step, counts })).slice(-STEPS_KEPT)
}

/** Within the window that ends now. */
export function countsOf(
  window: CountWindow,
  now: number,
  windowMs: number,
): Readonly<Record<string, number>> {
  const sums: Record<string, number> = {}
  for (const { counts } of window.filter(isWithin(stepOf(now, windowMs), windowMs))) {
    for (const [name, times] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + times
  }
  return sums
}

/** Whether it belongs to the window whose last step is `last`. */
function isWithin(last: number, windowMs: number): (one: CountStep) => boolean {
  const ahead = Math.max(STEPS, Math.ceil((SKEW_MS * STEPS) / windowMs))
  return ({ step }) => step > last - STEPS && step <= last + ahead
}

function stepOf(at: number, windowMs: number): number {
  return Math.floor((at * STEPS) / windowMs)
}
