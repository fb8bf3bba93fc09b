import type { Clock } from '../model/clock.ts'
import { withinLimit } from '../transport/within-limit.ts'

const SOON_MS = 1_000

/** What the store answers to somebody who must not wait for it; undefined when it is away, or slow. */
export function soon<T>(clock: Clock, asked: Promise<T>): Promise<T | undefined> {
  const late = (): Error => new Error('too late')
  return withinLimit(asked, { clock, limitMs: SOON_MS, late, ends: [] }).catch(() => undefined)
}
