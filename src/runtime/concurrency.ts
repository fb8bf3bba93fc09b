import type { Concurrency } from '../flow/queue-flow.ts'
import { read } from '../model/probe.ts'
import type { Problems } from '../model/problems.ts'

const MOST = 10_000
const DAY_MS = 86_400_000

/** A number, or bounds within which it adapts. Given as unknown: config files and JavaScript have no types. */
export function resolveConcurrency(name: string, given: unknown, found: Problems): Concurrency {
  if (typeof given !== 'object' || given === null) {
    return found.number(name, given, { min: 1, max: MOST, default: 10 })
  }
  found.knownKeys(given, ['min', 'max', 'targetAgeMs'], name)
  const min = found.number(`${name}.min`, read(given, 'min'), { min: 1, max: MOST })
  return {
    min,
    max: found.number(`${name}.max`, read(given, 'max'), { min, max: MOST }),
    targetAgeMs: found.number(`${name}.targetAgeMs`, read(given, 'targetAgeMs'), {
      min: 100,
      max: DAY_MS,
      default: 10_000,
    }),
  }
}
