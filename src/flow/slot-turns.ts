import type { Clock } from '../model/clock.ts'
import { forgetOldest, LONGEST_MS } from './turns.ts'

/**
 * When messages come again whose key has all of its slots taken: each in a turn of its own, so that not all that wait are turned over for
 * each that may run. An appointment cannot be moved, and what it was made by may be over soon (a slow run, a worker that died), so
 * those that wait are spread no further than a small multiple of what a slot lately took.
 */
export interface SlotTurns {
  /** In ms from now. */
  next(key: string): number
  /** A slot of the key is ours. */
  held(key: string): void
  /** A handler of the key has ended. */
  ran(key: string, tookMs: number): void
}

/** Twice as many come back as can run: a key must not stand idle because a handler was quick. */
const TURNS_PER_SLOT = 2
/** Of a slot, however quick handlers are. */
const TURN_MIN_MS = 20
const TURN_MAX_MS = 60_000
/** Of all keys together, for those that come more often than slots become free: what they cost is bounded, whatever waits. */
const LOOK_MS = 50
/** Of a key of which no handler has ended here: whoever holds its slots may be gone, and nothing says until when. */
const LOOK_UNKNOWN_MS = 20
/** How far those that wait are spread, in times of a slot. */
const HORIZON_SLOTS = 2
const HORIZON_MIN_MS = 2_000
const HORIZON_MAX_MS = 120_000
/** What one run says of the next ones. */
const NEWS_SHARE = 0.25
/** A key that nobody asked for so long behind its last turn is full no more. */
const QUIET_MS = 60_000

/** The appointments of one key. Of a denser one that was begun before the last had ended, the later. */
interface Line {
  /** Lately; 0 when none has ended here. */
  tookMs: number
  /** Undefined: the last that asked got a slot. */
  fullSince: number | undefined
  gapMs: number
  gapAt: number
  last: number
  /** Nobody has an appointment behind it. */
  until: number
}

export function slotTurns(clock: Clock, max: number): SlotTurns {
  const lines = new Map<string, Line>()

  const lineOf = (key: string, now: number): Line => {
    forgetQuiet(lines, now)
    const line = lines.get(key) ?? newLine(now)
    // Behind all others: the first is the one that was not asked for longest.
    lines.delete(key)
    lines.set(key, line)
    forgetOldest(lines)
    return line
  }

  return {
    next(key) {
      const now = clock.now()
      const line = lineOf(key, now)
      // Who comes late was not kept from a slot meanwhile.
      if (now > line.until + HORIZON_MIN_MS) line.fullSince = undefined
      line.fullSince ??= now
      // A slot that is not free yet takes no less than until now.
      const slotMs = Math.max(line.tookMs, now - line.fullSince)
      const lookMs = line.tookMs === 0 ? LOOK_UNKNOWN_MS : LOOK_MS
      const idealMs = between(TURN_MIN_MS, slotMs / TURNS_PER_SLOT, TURN_MAX_MS) / max
      const leastMs = Math.min(idealMs, Math.max(TURN_MIN_MS / max, lookMs * lines.size))
      const horizonMs = between(HORIZON_MIN_MS, slotMs * HORIZON_SLOTS, HORIZON_MAX_MS)
      return appointed(line, now, { idealMs, leastMs, horizonMs })
    },
    held(key) {
      const line = lines.get(key)
      if (line !== undefined) line.fullSince = undefined
    },
    ran(key, tookMs) {
      const line = lines.get(key)
      if (line === undefined) return
      line.fullSince = undefined
      line.tookMs += (tookMs - line.tookMs) * (line.tookMs === 0 ? 1 : NEWS_SHARE)
    },
  }
}

interface Spread {
  /** Between two turns: as far apart as slots become free, */
  readonly idealMs: number
  /** and as near as they may be for all that wait to have theirs within */
  readonly leastMs: number
  readonly horizonMs: number
}

/** The next turn of a line, in ms from now. One that is too long for its horizon is begun again from now, twice as dense. */
function appointed(line: Line, now: number, { idealMs, leastMs, horizonMs }: Spread): number {
  const isTooLong = line.last > now + horizonMs - line.gapMs && line.gapMs > leastMs
  const isShort = line.last < now + horizonMs / 2 && line.gapAt <= now - horizonMs / 4
  const factor = isTooLong ? 1 / 2 : isShort ? 2 : 1
  const gapMs = between(leastMs, line.gapMs * factor, idealMs)
  const from = isTooLong ? now : Math.max(now, line.last)
  if (gapMs !== line.gapMs) line.gapAt = now
  line.gapMs = gapMs
  line.last = Math.min(from + gapMs, now + LONGEST_MS)
  line.until = Math.max(line.until, line.last)
  return Math.ceil(line.last - now)
}

function newLine(now: number): Line {
  return { tookMs: 0, fullSince: undefined, gapMs: 0, gapAt: now, last: now, until: now }
}

function forgetQuiet(lines: Map<string, Line>, now: number): void {
  for (const [key, { until }] of lines) {
    if (until + QUIET_MS >= now) return
    lines.delete(key)
  }
}

function between(least: number, wanted: number, most: number): number {
  return Math.max(least, Math.min(wanted, most))
}
