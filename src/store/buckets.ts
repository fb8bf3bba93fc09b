/** Token buckets, for rates that all workers share. */
export interface Buckets {
  /** Takes all `tokens` or none; parts of a token are allowed. A bucket that nobody has used, or that was full, is full. */
  take(name: string, rate: BucketRate, tokens: number): Promise<Taken>
}

export interface BucketRate {
  /** Most that can be taken at once, more than 0. */
  readonly capacity: number
  /** More than 0, and enough to fill the bucket within ten years. */
  readonly refillPerSecond: number
}

export interface Taken {
  readonly taken: boolean
  /** 0 when taken; else when as many tokens will be there if nobody else takes them; undefined: never (above capacity). */
  readonly retryAfterMs: number | undefined
}
