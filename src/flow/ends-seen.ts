import { type BreakerSettings, breakerBelieved, type EndsSeen } from './breaker.ts'
import type { BreakerFleet } from './breaker-fleet.ts'

interface Seen extends EndsSeen {
  /** As they were written. */
  readonly ends: EndsSeen
}

/**
 * Believes what lies in the store as far as this process's own clock goes, and remembers since when: an end that is read again and again
 * must not move on with each look. A clock that was set back sees everything anew.
 */
export function endsSeen(
  settings: BreakerSettings,
): (fleet: BreakerFleet, now: number) => BreakerFleet {
  let known: ReadonlyMap<string, Seen> = new Map()
  return (fleet, now) => {
    const next = new Map<string, Seen>()
    const believed = [...fleet].map(([name, state]) => {
      const ends = { until: state.until, gate: state.gate?.until ?? 0 }
      const before = known.get(name)
      const since = (end: keyof EndsSeen): number =>
        before !== undefined && before.ends[end] === ends[end] ? Math.min(now, before[end]) : now
      const seen = { until: since('until'), gate: since('gate'), ends }
      next.set(name, seen)
      return [name, breakerBelieved(state, seen, settings)] as const
    })
    known = next
    return new Map(believed)
  }
}
