import type { Clock } from '../model/clock.ts'
import { pause } from '../model/clock.ts'
import type { SwappedStates } from '../store/swapped-states.ts'

export interface StateChange<State> {
  readonly states: SwappedStates
  readonly clock: Clock
  /** 0 <= n < 1. */
  readonly random: () => number
  readonly name: string
  /** Undefined for what is none of ours: it begins anew. */
  readonly read: (value: unknown) => State | undefined
  /** What lies in the store as JSON. Default: the state itself. */
  readonly write?: (state: State) => unknown
  /** Undefined: leave it as it is. Called again with what somebody else wrote meanwhile. */
  readonly change: (before: State | undefined) => State | undefined
  /** Once it has fired, tries follow each other without a wait. */
  readonly closed?: AbortSignal
}

const TRIES_MAX = 10
const WAIT_MS = 20

/** Reads, decides, and swaps, again when somebody was faster. Answers what is there now; undefined when nobody let us in. */
export async function changedState<State>(change: StateChange<State>): Promise<State | undefined> {
  const { states, clock, random, name, closed } = change
  for (let i = 1; i <= TRIES_MAX; i++) {
    const found = await states.read(name)
    const before = found === undefined ? undefined : readState(found.value, change.read)
    const after = change.change(before)
    if (after === undefined) return before
    const text = JSON.stringify(change.write?.(after) ?? after)
    if ((await states.swap(name, found?.version, text)) !== undefined) return after
    await pause(clock, random() * WAIT_MS * i, closed)
  }
  return undefined
}

/** Another version of ours, or another program, may have written it. */
export function readState<State>(
  value: string,
  read: (value: unknown) => State | undefined,
): State | undefined {
  try {
    return read(JSON.parse(value))
  } catch {
    return undefined
  }
}
