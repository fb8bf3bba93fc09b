import type { KillSwitchSettings } from '../flow/kill-switch.ts'
import type { Concurrency } from '../flow/queue-flow.ts'
import { read } from '../model/probe.ts'
import { type Problems, show } from '../model/problems.ts'
import type { WorkOptions } from './app.ts'
import { resolveConcurrency } from './concurrency.ts'

/** Options of `work` with every default filled in. */
export interface ResolvedWork {
  readonly concurrency: Concurrency
  readonly killSwitch: KillSwitchSettings | undefined
}

// A record, so that the compiler misses the key that is forgotten here.
const keys: Readonly<Record<keyof WorkOptions, true>> = { concurrency: true, killSwitch: true }

export const WORK_KEYS: readonly string[] = Object.keys(keys)

/** Given as unknown: config files and JavaScript have no types. `at` is what holds them, with its dot. */
export function resolveWork(given: unknown, found: Problems, at = ''): ResolvedWork {
  return {
    concurrency: resolveConcurrency(`${at}concurrency`, read(given, 'concurrency'), found),
    killSwitch: resolveKillSwitch(`${at}killSwitch`, read(given, 'killSwitch'), found),
  }
}

function resolveKillSwitch(
  name: string,
  given: unknown,
  found: Problems,
): KillSwitchSettings | undefined {
  if (given === undefined || given === false) return undefined
  if (given !== true && (typeof given !== 'object' || given === null)) {
    found.add(`${name}: expected true, false or an object of options, got ${show(given)}`)
    return undefined
  }
  if (given !== true) {
    found.knownKeys(given, ['failures', 'share', 'windowMs', 'resumeAfterMs'], name)
  }
  const number = (
    key: keyof KillSwitchSettings,
    rule: { readonly min: number; readonly max: number; readonly default: number },
  ): number =>
    found.number(`${name}.${key}`, read(given, key), { ...rule, integer: key !== 'share' })
  return {
    failures: number('failures', { min: 2, max: 100_000, default: 20 }),
    share: number('share', { min: 0.01, max: 1, default: 0.5 }),
    windowMs: number('windowMs', { min: 1_000, max: 3_600_000, default: 60_000 }),
    resumeAfterMs: number('resumeAfterMs', { min: 1_000, max: 86_400_000, default: 60_000 }),
  }
}
