import { backoffCeilingMs } from '../model/retry.ts'

const GAPS = { attempts: Number.POSITIVE_INFINITY, baseMs: 500, maxMs: 300_000 }

/**
 * The gap after the row was handed out for the k-th time (first k = 1) and not confirmed: 0.5 s, doubling up to 5 min,
 * less up to a quarter of jitter. Each gap is longer than the one before, until the longest.
 */
export function relayGapMs(k: number, random: () => number): number {
  return Math.ceil(backoffCeilingMs(k, GAPS) * (1 - random() / 4))
}

const QUIET_TRIES = 10

/** A row that fails is worth a word when it was tried more than ten times, and then once per doubling: 11, 21, 41, … */
export function isAlarming(tries: number): boolean {
  if (tries <= QUIET_TRIES) return false
  const doublings = (tries - 1) / QUIET_TRIES
  return Number.isInteger(Math.log2(doublings))
}
