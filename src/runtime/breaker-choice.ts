import type { BreakerSettings } from '../flow/breaker.ts'
import { type IsFailure, isTransient } from '../flow/failure-judge.ts'
import type { GateSettings } from '../flow/gate.ts'
import type { Classification } from '../model/classify.ts'
import { read } from '../model/probe.ts'
import { type Problems, show } from '../model/problems.ts'

/** When the downstream of a queue is left alone. */
export interface BreakerOptions {
  /** Share of the runs in the window that must have failed, 0.01 to 1. Default 0.5. */
  readonly failureShare?: number
  /** Runs in the window below which nothing is decided, 1 to 100,000. Default 10. */
  readonly minimum?: number
  /** In ms, 1,000 to 3,600,000. Default 30,000. */
  readonly windowMs?: number
  /** How long it is left alone before one message is tried, in ms, 100 to openMaxMs; doubled each time in a row. Default 10,000. */
  readonly openMs?: number
  /** In ms, 1,000 to 86,400,000. Default 300,000. */
  readonly openMaxMs?: number
  /** Who shares it: all workers of the store, or each process for itself. Default `store`. */
  readonly scope?: 'store' | 'process'
  /**
   * Whether a failure is the downstream's, at once. Default: the transient ones, timeouts among them; that decides also where this throws or
   * gives no boolean, which the log says once.
   */
  readonly isFailure?: (failure: Pick<Classification, 'errorClass' | 'code'>) => boolean
}

/** How a downstream that asked for a pause (a 429 with Retry-After) is met again. */
export interface GateOptions {
  /** Messages per second at first, 0.01 to 10,000. Default 1. */
  readonly startPerSecond?: number
  /** They double in this time, in ms, 100 to 600,000. Default 5,000. */
  readonly stepMs?: number
}

/** With every default filled in. */
export interface BreakerChoice extends BreakerSettings {
  readonly scope: 'store' | 'process'
  readonly isFailure: IsFailure
}

const KEYS: Readonly<Record<keyof BreakerOptions, true>> = {
  failureShare: true,
  minimum: true,
  windowMs: true,
  openMs: true,
  openMaxMs: true,
  scope: true,
  isFailure: true,
}

/** Undefined without a downstream. */
export function resolveBreaker(
  downstream: unknown,
  { breaker: options, gate }: Given,
  found: Problems,
): BreakerChoice | undefined {
  found.optionalFunction('downstream', downstream)
  if (options !== undefined) found.knownKeys(options, Object.keys(KEYS), 'breaker')
  if (downstream === undefined) {
    for (const [name, value] of Object.entries({ breaker: options, gate })) {
      if (value === undefined) continue
      found.add(`${name}: needs downstream, which names the system that a payload goes to`)
    }
    return undefined
  }
  found.optionalFunction('breaker.isFailure', read(options, 'isFailure'))
  const scope: unknown = read(options, 'scope') ?? 'store'
  if (scope !== 'store' && scope !== 'process') {
    found.add(`breaker.scope: expected "store" or "process", got ${show(scope)}`)
  }
  const number = (key: 'minimum' | 'windowMs' | 'openMs' | 'openMaxMs', rule: Rule): number =>
    found.number(`breaker.${key}`, read(options, key), rule)
  const openMaxMs = number('openMaxMs', { min: 1_000, max: 86_400_000, default: 300_000 })
  return {
    failureShare: found.number('breaker.failureShare', read(options, 'failureShare'), {
      min: 0.01,
      max: 1,
      default: 0.5,
      integer: false,
    }),
    minimum: number('minimum', { min: 1, max: 100_000, default: 10 }),
    windowMs: number('windowMs', { min: 1_000, max: 3_600_000, default: 30_000 }),
    openMs: number('openMs', { min: 100, max: openMaxMs, default: Math.min(10_000, openMaxMs) }),
    openMaxMs,
    scope: scope === 'process' ? 'process' : 'store',
    gate: resolveGate(gate, found),
    isFailure: options?.isFailure ?? isTransient,
  }
}

interface Given {
  readonly breaker?: BreakerOptions
  readonly gate?: GateOptions | false
}

function resolveGate(given: unknown, found: Problems): GateSettings | undefined {
  if (given === false) return undefined
  if (given !== undefined) found.knownKeys(given, ['startPerSecond', 'stepMs'], 'gate')
  return {
    startPerSecond: found.number('gate.startPerSecond', read(given, 'startPerSecond'), {
      min: 0.01,
      max: 10_000,
      default: 1,
      integer: false,
    }),
    stepMs: found.number('gate.stepMs', read(given, 'stepMs'), {
      min: 100,
      max: 600_000,
      default: 5_000,
    }),
  }
}

interface Rule {
  readonly min: number
  readonly max: number
  readonly default: number
}
