import type { BucketRate, Taken } from '../store/buckets.ts'

/** A bucket that is not full; a full one needs no record. */
export interface BucketLevel {
  readonly tokens: number
  /** Epoch ms of the last taking. */
  readonly at: number
  /** Epoch ms; from then on it is full, whatever its rate has become. */
  readonly fullAt: number
}

/** Sums of doubles may miss a whole token by less than this. */
const ROUNDING = 1e-9

/** Takes from a bucket; `level` is undefined when nothing was taken, and then it stays as it was. */
export function takeTokens(
  before: BucketLevel | undefined,
  { capacity, refillPerSecond }: BucketRate,
  tokens: number,
  now: number,
): { readonly answer: Taken; readonly level: BucketLevel | undefined } {
  const perMs = refillPerSecond / 1_000
  const there =
    before === undefined || before.fullAt <= now
      ? capacity
      : Math.min(capacity, before.tokens + Math.max(0, now - before.at) * perMs)
  if (there + ROUNDING < tokens) {
    const retryAfterMs = Math.ceil((tokens - there) / perMs)
    return { answer: { taken: false, retryAfterMs }, level: undefined }
  }
  const left = Math.max(0, there - tokens)
  return {
    answer: { taken: true, retryAfterMs: 0 },
    level: { tokens: left, at: now, fullAt: now + (capacity - left) / perMs },
  }
}
