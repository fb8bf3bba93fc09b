/** What is known of a queue; undefined where nobody can say, which is not zero. */
export interface ScaleFacts {
  readonly depth: number | undefined
  readonly inFlight: number | undefined
  readonly paused: boolean
  /** Messages that come, per second. */
  readonly arrivalsPerSecond: number | undefined
  /** How long a handler takes, in ms. */
  readonly handlerMs: number | undefined
  /** No more may run side by side in all workers together. Absent: no limit. */
  readonly slotsMax?: number | undefined
}

/** What is wanted of the workers of a queue. */
export interface ScaleGoal {
  /** Handlers side by side in one worker, 1 to 10,000. */
  readonly concurrency: number
  /** What waits now must be gone within this time, in ms, 1,000 to 86,400,000. */
  readonly clearWithinMs: number
  /** Share of the time that a slot should be busy, 0.1 to 1: near 1, waiting grows without bound. */
  readonly utilisation: number
  readonly min: number
  readonly max: number
}

export interface Recommendation {
  /** Undefined when too little is known; `why` says what is missing. */
  readonly workers: number | undefined
  /** Handlers that must be able to run side by side, in all workers together. */
  readonly slots: number | undefined
  readonly why: readonly string[]
}

/**
 * How many workers a queue needs. Little's law: as many handlers run at any time as messages arrive in the time that one takes;
 * on top come those that work off what waits.
 */
export function recommend(facts: ScaleFacts, goal: ScaleGoal): Recommendation {
  const { depth, inFlight, handlerMs } = facts
  if (facts.paused) return clamped(0, goal, ['the queue is paused: nothing is handed out'])
  if (depth === undefined) return unknown('the backend does not say how much waits')
  if (handlerMs === undefined) return withoutHandlerTime(depth, inFlight, goal)
  const steady = steadyOf(facts, handlerMs)
  if (steady === undefined) {
    return unknown('neither is it known how many messages arrive nor how many are in flight')
  }
  const seconds = handlerMs / 1_000
  const catchUp = (depth * handlerMs) / goal.clearWithinMs
  const wanted = (steady.slots + catchUp) / goal.utilisation
  const slots = Math.min(wanted, facts.slotsMax ?? wanted)
  const share = Math.round(goal.utilisation * 100)
  const why = [
    steady.why,
    `${round(depth)} wait and are to be gone within ${round(goal.clearWithinMs / 1_000)} s: ` +
      `${round(catchUp)} more (${round(depth)} × ${round(seconds)} s / ${round(goal.clearWithinMs / 1_000)} s)`,
    `busy for ${share} % of the time at most: ${round(wanted)} slots, ${goal.concurrency} in each worker`,
    ...(slots < wanted ? [`no more than ${slots} may run side by side (concurrencyLimit)`] : []),
  ]
  const someArrive =
    steady.slots > SLOTS_IDLE || (facts.arrivalsPerSecond ?? 0) >= ARRIVALS_IDLE_PER_SECOND
  const someWork = depth > 0 || (inFlight ?? 0) > 0 || someArrive
  const needed = Math.ceil(slots / goal.concurrency - TOLERANCE)
  return { ...clamped(someWork ? Math.max(1, needed) : 0, goal, why), slots }
}

/**
 * A rate decays and never reaches 0; less than one message in a hundred handler times keeps no worker up. Of handlers that take a
 * millisecond that would be ten messages a second, which go through an empty queue: so the rate itself counts, too.
 */
const SLOTS_IDLE = 0.01
const ARRIVALS_IDLE_PER_SECOND = 0.01
/** Of the division alone. */
const TOLERANCE = 1e-9

function steadyOf(
  { arrivalsPerSecond, inFlight }: ScaleFacts,
  handlerMs: number,
): { readonly slots: number; readonly why: string } | undefined {
  if (arrivalsPerSecond !== undefined) {
    const slots = (arrivalsPerSecond * handlerMs) / 1_000
    const why =
      `${round(arrivalsPerSecond)} messages/s arrive and a handler takes ${round(handlerMs)} ms: ` +
      `${round(slots)} run at any time (Little's law)`
    return { slots, why }
  }
  if (inFlight === undefined) return undefined
  const why = `${inFlight} are in flight now, which is what arrives in one handler time (Little's law)`
  return { slots: inFlight, why }
}

/** A guess would scale down a fleet that works; only where nobody works, one worker is there to measure. */
function withoutHandlerTime(
  depth: number,
  inFlight: number | undefined,
  goal: ScaleGoal,
): Recommendation {
  if (inFlight !== 0) {
    return unknown('how long a handler takes is not known; nobody has measured it, or nobody told')
  }
  const workers = depth > 0 ? 1 : 0
  const why =
    depth > 0
      ? `${depth} wait, nobody works on them, and how long a handler takes is not known: one worker, to begin and to measure`
      : 'nothing waits and nothing is in flight'
  return clamped(workers, goal, [why])
}

function clamped(wanted: number, goal: ScaleGoal, why: readonly string[]): Recommendation {
  const workers = Math.min(goal.max, Math.max(goal.min, wanted))
  const bound = wanted < goal.min ? `min is ${goal.min}` : `max is ${goal.max}`
  const said = workers === wanted ? why : [...why, `${wanted} by that, but ${bound}`]
  return { workers, slots: undefined, why: said }
}

function unknown(why: string): Recommendation {
  return { workers: undefined, slots: undefined, why: [why] }
}

/** Three digits are more than a measurement is worth. */
function round(n: number): string {
  return n >= 100 ? String(Math.round(n)) : String(Number(n.toPrecision(3)))
}
