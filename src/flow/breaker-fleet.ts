import { read } from '../model/probe.ts'
import {
  type BreakerSettings,
  type BreakerState,
  breakerCounted,
  CLOSED,
  isForgettable,
} from './breaker.ts'
import { type CountWindow, countsOf } from './count-window.ts'
import type { GateState } from './gate.ts'

/** All breakers of a queue that are worth remembering, by the name of their downstream. */
export type BreakerFleet = ReadonlyMap<string, BreakerState>

/** Those held by hand, open ones, those that asked for a pause, and the worst of the others; together some 100 kB. */
export const KEPT_MAX = 400

/** After runs of one process, by downstream. */
export function fleetCounted(
  fleet: BreakerFleet,
  ran: ReadonlyMap<string, CountWindow>,
  now: number,
  settings: BreakerSettings,
): BreakerFleet {
  const next = new Map(fleet)
  for (const [name, window] of ran) {
    next.set(name, breakerCounted(fleet.get(name) ?? CLOSED, window, now, settings))
  }
  return trimmed(next, now, settings)
}

function trimmed(fleet: BreakerFleet, now: number, settings: BreakerSettings): BreakerFleet {
  const kept = [...fleet].filter(([, state]) => !isForgettable(state, now, settings))
  if (kept.length <= KEPT_MAX) return new Map(kept)
  const failed = ({ window }: BreakerState): number =>
    countsOf(window, now, settings.windowMs)['failed'] ?? 0
  const before = (a: BreakerState, b: BreakerState): number =>
    rankOf(b) - rankOf(a) || failed(b) - failed(a)
  return new Map(kept.sort(([, a], [, b]) => before(a, b)).slice(0, KEPT_MAX))
}

/** What a person decided goes last; what is forgotten is learnt again from a failure. */
function rankOf({ held, phase, gate }: BreakerState): number {
  if (held !== 'none') return 3
  if (phase !== 'closed') return 2
  return gate === undefined ? 0 : 1
}

/** As it lies in the store: names are anything, so they are no keys of an object. */
export function fleetToJson(fleet: BreakerFleet): readonly (readonly [string, BreakerState])[] {
  return [...fleet]
}

/** Undefined for what another program wrote. */
export function fleetFromJson(value: unknown): BreakerFleet | undefined {
  if (!Array.isArray(value)) return undefined
  const fleet = new Map<string, BreakerState>()
  for (const entry of value) {
    const [name, state] = Array.isArray(entry) ? entry : []
    const known = stateFrom(state)
    if (typeof name === 'string' && known !== undefined) fleet.set(name, known)
  }
  return fleet
}

function stateFrom(value: unknown): BreakerState | undefined {
  const phase = oneOf(read(value, 'phase'), ['closed', 'open', 'half-open'] as const)
  const held = oneOf(read(value, 'held'), ['open', 'closed', 'none'] as const)
  const fence = read(value, 'fence')
  const window = windowFrom(read(value, 'window'))
  const number = (key: string): number => {
    const found = read(value, key)
    return typeof found === 'number' ? found : 0
  }
  if (phase === undefined || held === undefined || window === undefined) return undefined
  if (typeof fence !== 'string' || !/^\d{1,30}$/.test(fence)) return undefined
  return {
    phase,
    held,
    fence,
    window,
    opens: number('opens'),
    until: number('until'),
    failed: number('failed'),
    runs: number('runs'),
    gate: gateFrom(read(value, 'gate')),
  }
}

function gateFrom(value: unknown): GateState | undefined {
  const [until, perSecond] = [read(value, 'until'), read(value, 'perSecond')]
  if (typeof until !== 'number' || typeof perSecond !== 'number') return undefined
  const forMs = read(value, 'forMs')
  return { until, perSecond, ...(typeof forMs === 'number' && { forMs }) }
}

function windowFrom(value: unknown): CountWindow | undefined {
  if (!Array.isArray(value)) return undefined
  return value.map((one: unknown) => {
    const counts = read(one, 'counts')
    const count = (name: string): number => Number(read(counts, name) ?? 0)
    return { step: Number(read(one, 'step')), counts: { ok: count('ok'), failed: count('failed') } }
  })
}

function oneOf<Known extends string>(value: unknown, known: readonly Known[]): Known | undefined {
  return known.find((one) => one === value)
}
