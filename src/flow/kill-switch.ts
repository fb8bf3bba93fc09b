import { type CountWindow, counted, countsOf } from './count-window.ts'

/** When a consumer whose handlers fail all alike stops, and for how long. */
export interface KillSwitchOptions {
  /** Failures of one kind within the window, 2 to 100,000. Default 20: more than the attempts of one message. */
  readonly failures?: number
  /** What share of the runs in the window they must be, 0.01 to 1. Default 0.5. */
  readonly share?: number
  /** In ms, 1,000 to 3,600,000. Default 60,000. */
  readonly windowMs?: number
  /** How long it stops, in ms, 1,000 to 86,400,000; doubled each time in a row, up to ten times this. Default 60,000. */
  readonly resumeAfterMs?: number
}

export type KillSwitchSettings = Required<KillSwitchOptions>

export interface KillSwitchState {
  readonly phase: 'running' | 'stopped' | 'trial'
  readonly window: CountWindow
  /** Why it stopped last; while it is on trial, too. */
  readonly stop: KillSwitchStop | undefined
  /** Stops without a success in between. */
  readonly stops: number
  readonly trialFailures: number
}

export interface KillSwitchStop {
  readonly kind: string
  readonly failures: number
  readonly runs: number
  readonly at: number
  readonly until: number
}

/** `ok`, or the kind of failure. */
export type KillSwitchEvent =
  | { readonly as: 'ok' }
  | { readonly as: 'failed'; readonly kind: string }

/** A message that fails by itself may be the one that is tried first. */
const TRIAL_FAILURES = 3
const LONGEST = 10
const OK = '+ok'

export const RUNNING: KillSwitchState = {
  phase: 'running',
  window: [],
  stop: undefined,
  stops: 0,
  trialFailures: 0,
}

/** After a run that ended at `at`. */
export function killSwitchAfter(
  state: KillSwitchState,
  event: KillSwitchEvent,
  at: number,
  settings: KillSwitchSettings,
): KillSwitchState {
  // What ran when it stopped ends in its time, and proves nothing.
  if (state.phase === 'stopped') return state
  if (state.phase === 'trial') return afterTrial(state, event, at, settings)
  const name = event.as === 'ok' ? OK : event.kind
  const window = counted(state.window, { [name]: 1 }, at, settings.windowMs)
  if (event.as === 'ok') return { ...state, window }
  const counts = countsOf(window, at, settings.windowMs)
  const failures = counts[event.kind] ?? 0
  const runs = Object.values(counts).reduce((sum, n) => sum + n, 0)
  if (failures < settings.failures || failures < settings.share * runs) return { ...state, window }
  return stopped(state, { kind: event.kind, failures, runs }, at, settings)
}

/** What it is at this moment: a stop ends with time. */
export function killSwitchAt(state: KillSwitchState, now: number): KillSwitchState {
  if (state.phase !== 'stopped' || now < (state.stop?.until ?? 0)) return state
  return { ...state, phase: 'trial', trialFailures: 0 }
}

/** How many handlers may run side by side; on trial one, until one succeeds. */
export function killSwitchSlots(state: KillSwitchState, slots: number): number {
  if (state.phase === 'stopped') return 0
  return state.phase === 'trial' ? Math.min(1, slots) : slots
}

function afterTrial(
  state: KillSwitchState,
  event: KillSwitchEvent,
  at: number,
  settings: KillSwitchSettings,
): KillSwitchState {
  if (event.as === 'ok') return RUNNING
  if (event.kind !== state.stop?.kind) return state
  const trialFailures = state.trialFailures + 1
  if (trialFailures < TRIAL_FAILURES) return { ...state, trialFailures }
  const why = { kind: event.kind, failures: trialFailures, runs: trialFailures }
  return stopped(state, why, at, settings)
}

function stopped(
  state: KillSwitchState,
  why: Pick<KillSwitchStop, 'kind' | 'failures' | 'runs'>,
  at: number,
  { resumeAfterMs }: KillSwitchSettings,
): KillSwitchState {
  const forMs = resumeAfterMs * Math.min(LONGEST, 2 ** state.stops)
  const stop = { ...why, at, until: at + forMs }
  return { phase: 'stopped', window: [], stop, stops: state.stops + 1, trialFailures: 0 }
}
