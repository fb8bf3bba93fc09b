/** A downstream that said "later": nobody goes there until then, and afterwards few at first. Small and plain. */
export interface GateState {
  /** Closed until then, epoch ms. */
  readonly until: number
  /** Half of what was let through per second when it said so; 0 when nothing was counted then. */
  readonly perSecond: number
  /** How long it was to be closed when it said so, in ms. Absent: an older version wrote it. */
  readonly forMs?: number
}

export interface GateSettings {
  /** Messages per second at the start. */
  readonly startPerSecond: number
  /** They double in this time, in ms. */
  readonly stepMs: number
}

/** Longer than this is nobody's rate limit. */
const LONGEST_MS = 86_400_000
/** Doubled so often, the rate is 4,096 times that of the start. */
const DOUBLINGS = 12
/** Beyond half of what was too much it grows by a tenth of it in a step, and is forgotten at four times. */
const GROWTH = 0.1
const FORGOTTEN_AT = 4

/** After an answer that said "later". */
export function gateThrottled(
  before: GateState | undefined,
  forMs: number,
  now: number,
  settings: GateSettings,
): GateState {
  const bounded = Math.min(LONGEST_MS, Math.max(0, forMs))
  const end = { until: now + bounded, forMs: bounded }
  if (before === undefined) return { ...end, perSecond: 0 }
  // What was under way when it closed tells nothing of the rate.
  if (now < before.until) return before.until >= end.until ? before : { ...before, ...end }
  const rate = gateRate(before, now, settings)
  return { ...end, perSecond: Number.isFinite(rate) ? rate / 2 : 0 }
}

/** As `breakerBelieved`: no longer from `seenAt` on than it was to last. */
export function gateBelieved(gate: GateState, seenAt: number): GateState {
  return { ...gate, until: Math.min(gate.until, seenAt + (gate.forMs ?? LONGEST_MS)) }
}

/** Messages per second that may go there now: 0 while it is closed, Infinity when it is over. Never falls while nothing says "later". */
export function gateRate(gate: GateState, now: number, settings: GateSettings): number {
  if (now < gate.until) return 0
  if (now >= gateEndsAt(gate, settings)) return Number.POSITIVE_INFINITY
  const steps = (now - gate.until) / settings.stepMs
  const kneeSteps = kneeStepsOf(gate, settings)
  if (steps < kneeSteps) return settings.startPerSecond * 2 ** steps
  return kneeOf(gate, settings) * (1 + GROWTH * (steps - kneeSteps))
}

/** From then on everything goes, and nothing of it is worth keeping. */
export function gateEndsAt(gate: GateState, settings: GateSettings): number {
  const slow = gate.perSecond > 0 ? (FORGOTTEN_AT - 1) / GROWTH : 0
  return gate.until + (kneeStepsOf(gate, settings) + slow) * settings.stepMs
}

function kneeOf(gate: GateState, { startPerSecond }: GateSettings): number {
  return Math.max(startPerSecond, gate.perSecond)
}

function kneeStepsOf(gate: GateState, settings: GateSettings): number {
  if (gate.perSecond === 0) return DOUBLINGS
  return Math.log2(kneeOf(gate, settings) / settings.startPerSecond)
}

/** When so many that wait can have gone through, in ms after it opens: they come back at about that time. */
export function gateWaitMs(waiting: number, { startPerSecond, stepMs }: GateSettings): number {
  const first = (startPerSecond * stepMs) / 1_000 / Math.LN2
  return stepMs * Math.min(DOUBLINGS, Math.log2(1 + waiting / first))
}
