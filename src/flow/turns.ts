import type { Clock } from '../model/clock.ts'
import { turnOf } from './rate-limit.ts'

/** When those that were given back for a limit come again: each behind the last one of its name. */
export interface Turns {
  /** In ms from now; no earlier than `earliestMs`. */
  next(name: string, earliestMs: number, perSecond: number): number
}

/** Turns that are further away are not known so exactly. */
export const LONGEST_MS = 300_000
const NAMES_MAX = 10_000

export function keptTurns(clock: Clock): Turns {
  const last = new Map<string, number>()
  return {
    next(name, earliestMs, perSecond) {
      const now = clock.now()
      const turn = turnOf(last.get(name), now, earliestMs, perSecond)
      last.delete(name)
      last.set(name, Math.min(turn, now + LONGEST_MS))
      forgetOldest(last)
      return Math.ceil(Math.min(turn - now, LONGEST_MS))
    },
  }
}

export function forgetOldest(names: Map<string, unknown> | Set<string>): void {
  const [oldest] = names.keys()
  if (names.size > NAMES_MAX && oldest !== undefined) names.delete(oldest)
}
