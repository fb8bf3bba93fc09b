import { OptionsError } from '../model/errors.ts'
import { show } from '../model/problems.ts'

const DAY_MS = 86_400_000
const TTL_MIN_DEFAULT_MS = 7 * DAY_MS
const TTL_MAX_MS = 3_650 * DAY_MS

/** Wrong whatever the queues are; found before anything is opened. */
export function ttlProblems(ttlMs: unknown): readonly string[] {
  if (ttlMs === undefined) return []
  if (typeof ttlMs === 'number' && ttlMs > 0 && ttlMs <= TTL_MAX_MS) return []
  return [`expected a number of ms up to ${TTL_MAX_MS} (ten years) for ttlMs, got ${show(ttlMs)}`]
}

/**
 * How long a key is remembered: what was asked for, else what the queues need, at least 7 days.
 * @throws MILLRACE_INVALID_OPTIONS when a duplicate could come later than the key is kept.
 */
export function resolveTtlMs(inbox: string, asked: number | undefined, neededMs: number): number {
  if (asked === undefined) return Math.max(Math.ceil(neededMs), TTL_MIN_DEFAULT_MS)
  if (asked >= neededMs) return Math.ceil(asked)
  throw new OptionsError(inbox, [
    `ttlMs is ${asked} ms (${days(asked)}), the queues need ${Math.ceil(neededMs)} ms (${days(neededMs)}): ` +
      'the longest retry horizon ((retry.attempts - 1) times retry.maxMs), the runs themselves (handlerTimeoutMs), the time ' +
      'for which a message may stay throttled, and redriveWindowMs; raise ttlMs, leave it out, or lower one of these',
  ])
}

function days(ms: number): string {
  return `${(ms / DAY_MS).toFixed(1)} days`
}
