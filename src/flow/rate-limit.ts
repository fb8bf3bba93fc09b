import type { BucketRate, Taken } from '../store/buckets.ts'

/** So many messages per second, and so many at once after a quiet time. */
export interface RateLimit {
  readonly perSecond: number
  readonly burst: number
}

/** A token bucket as it was left. */
export interface BucketLevel {
  readonly level: number
  readonly at: number
}

/** Takes all tokens or none; one that nobody has used is full. */
export function bucketTaken(
  before: BucketLevel | undefined,
  { capacity, refillPerSecond }: BucketRate,
  tokens: number,
  now: number,
): { readonly after: BucketLevel; readonly answer: Taken } {
  const refilled = before && before.level + (Math.max(0, now - before.at) * refillPerSecond) / 1_000
  const level = Math.min(capacity, refilled ?? capacity)
  if (level >= tokens) {
    return { after: { level: level - tokens, at: now }, answer: { taken: true, retryAfterMs: 0 } }
  }
  const missingMs = ((tokens - level) * 1_000) / refillPerSecond
  const retryAfterMs = tokens > capacity ? undefined : missingMs
  return { after: { level, at: now }, answer: { taken: false, retryAfterMs } }
}

/**
 * When a message that found no token comes back, epoch ms: each in a turn of its own behind the last one (`lastTurn`), so that a million
 * that wait are not turned over for every one that may go.
 */
export function turnOf(
  lastTurn: number | undefined,
  now: number,
  retryAfterMs: number,
  perSecond: number,
): number {
  return Math.max(now + retryAfterMs, (lastTurn ?? 0) + 1_000 / perSecond)
}
