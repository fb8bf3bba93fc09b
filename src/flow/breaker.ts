import { type CountWindow, countsOf, mergedWindows } from './count-window.ts'
import { type GateSettings, type GateState, gateBelieved, gateEndsAt } from './gate.ts'

/** When a downstream is left alone, and for how long. */
export interface BreakerSettings {
  /** Share of the runs in the window that must have failed. */
  readonly failureShare: number
  /** Runs in the window below which nothing is decided. */
  readonly minimum: number
  readonly windowMs: number
  /** How long it is left alone before one message is tried; doubled each time that this fails. */
  readonly openMs: number
  readonly openMaxMs: number
  /** For answers that say "later"; undefined: each message waits by itself. */
  readonly gate: GateSettings | undefined
}

/** Of one downstream. Small and plain, so that it can lie in a store. */
export interface BreakerState {
  readonly phase: 'closed' | 'open' | 'half-open'
  /** Of runs while it was closed: `ok` and `failed`. */
  readonly window: CountWindow
  /** Times that it opened without having closed. */
  readonly opens: number
  /** When a probe may be sent, epoch ms. */
  readonly until: number
  /** Of the last probe's lease, in decimal; whoever holds an older one is too late. */
  readonly fence: string
  /** By hand: nothing decides but the hand. */
  readonly held: 'open' | 'closed' | 'none'
  /** What it opened for. */
  readonly failed: number
  readonly runs: number
  /** It said "later", lately. */
  readonly gate: GateState | undefined
}

export const CLOSED: BreakerState = {
  phase: 'closed',
  window: [],
  opens: 0,
  until: 0,
  fence: '0',
  held: 'none',
  failed: 0,
  runs: 0,
  gate: undefined,
}

export type BreakerVerdict =
  | { readonly as: 'run' }
  /** Whoever gets the probe's lease runs it; all others wait. */
  | { readonly as: 'probe' }
  | { readonly as: 'wait'; readonly until: number }

const RUN: BreakerVerdict = { as: 'run' }
const PROBE: BreakerVerdict = { as: 'probe' }
/** Held open by hand, nobody knows for how long: look again. */
const HELD_LOOK_MS = 30_000

/** Asked before a run. */
export function breakerVerdict(state: BreakerState, now: number): BreakerVerdict {
  if (state.held === 'open') return { as: 'wait', until: now + HELD_LOOK_MS }
  if (state.held === 'closed' || state.phase === 'closed') return RUN
  if (state.phase === 'open' && now < state.until) return { as: 'wait', until: state.until }
  return PROBE
}

/** After runs while it was closed, of any number of processes. What began before it opened and ends now says nothing new. */
export function breakerCounted(
  state: BreakerState,
  ran: CountWindow,
  now: number,
  settings: BreakerSettings,
): BreakerState {
  if (state.phase !== 'closed') return state
  const window = mergedWindows(state.window, ran, now, settings.windowMs)
  const { ok = 0, failed = 0 } = countsOf(window, now, settings.windowMs)
  const runs = ok + failed
  const isFine = runs < settings.minimum || failed < settings.failureShare * runs
  if (isFine || state.held !== 'none') return { ...state, window }
  return opened(state, { failed, runs }, now, settings)
}

/** Somebody got the lease of the probe. Undefined when there is nothing to probe, or somebody with a later fence does. */
export function breakerProbing(
  state: BreakerState,
  fence: bigint,
  now: number,
): BreakerState | undefined {
  if (breakerVerdict(state, now).as !== 'probe' || fence <= BigInt(state.fence)) return undefined
  return { ...state, phase: 'half-open', fence: String(fence) }
}

/** The probe has ended. `undecided`: nobody knows, the next one is sent at once. */
export function breakerProbed(
  state: BreakerState,
  fence: bigint,
  outcome: 'ok' | 'failed' | 'undecided',
  now: number,
  settings: BreakerSettings,
): BreakerState {
  const isLate = state.phase !== 'half-open' || state.fence !== String(fence)
  if (isLate || outcome === 'undecided') return state
  // The fence stays: a probe that was forgotten must not open it again.
  if (outcome === 'ok') return { ...CLOSED, held: state.held, fence: state.fence, gate: state.gate }
  return opened(state, state, now, settings)
}

/** By hand. `none`: it decides by itself again, and begins closed. */
export function breakerHeld(state: BreakerState, held: BreakerState['held']): BreakerState {
  return held === 'none' ? { ...CLOSED, fence: state.fence } : { ...state, held }
}

/** When a process first saw the ends of a state, epoch ms by its own clock. */
export interface EndsSeen {
  readonly until: number
  readonly gate: number
}

/**
 * As a process believes it whose clock may differ from that of who wrote it: it ends no later than if it had begun when it was first seen.
 * With a clock that is a day ahead one machine would otherwise keep all others out for a day.
 */
export function breakerBelieved(
  state: BreakerState,
  seen: EndsSeen,
  settings: BreakerSettings,
): BreakerState {
  const until = Math.min(state.until, seen.until + openForMs(state.opens - 1, settings))
  return { ...state, until, gate: state.gate && gateBelieved(state.gate, seen.gate) }
}

/** Nothing in it is worth keeping. */
export function isForgettable(
  { held, phase, gate, window }: BreakerState,
  now: number,
  settings: BreakerSettings,
): boolean {
  if (held !== 'none' || phase !== 'closed') return false
  if (gate && settings.gate && now < gateEndsAt(gate, settings.gate)) return false
  return (countsOf(window, now, settings.windowMs)['failed'] ?? 0) === 0
}

function opened(
  state: BreakerState,
  { failed, runs }: Pick<BreakerState, 'failed' | 'runs'>,
  now: number,
  settings: BreakerSettings,
): BreakerState {
  const until = now + openForMs(state.opens, settings)
  return { ...state, phase: 'open', window: [], opens: state.opens + 1, until, failed, runs }
}

/** `before`: times that it opened before. */
function openForMs(before: number, { openMs, openMaxMs }: BreakerSettings): number {
  return Math.min(openMaxMs, openMs * 2 ** Math.min(30, Math.max(0, before)))
}
