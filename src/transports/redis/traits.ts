import type { Traits } from '../../transport/traits.ts'

const HOUR_MS = 3_600_000

/** Ten years and their leap days. */
export const DELAY_MAX_MS: number = 3_653 * 24 * HOUR_MS
export const RECEIVE_MAX = 1_000
/** A script takes at most this many messages: Lua hands on no more than some 8,000 values at once. */
export const SETTLE_STEP = 1_000

/** @param durable whether every write is on disk before it is confirmed */
export function redisTraits(durable: boolean): Traits {
  return {
    settles: 'each',
    claim: { kind: 'lease', maxMs: 24 * HOUR_MS },
    release: 'delayed',
    uncountedRelease: true,
    counts: 'deliveries',
    keepsHistory: true,
    countsCrashes: true,
    order: 'none',
    delay: { maxMs: DELAY_MAX_MS },
    dedupe: { windowMs: 'any' },
    remembersIds: true,
    deadLetters: 'native',
    priorities: 1,
    capacity: 'exact',
    atomicBatch: true,
    clock: 'server',
    durability: durable ? 'disk' : 'process',
    limits: {
      bodyBytes: 16 * 1024 * 1024,
      sendBatch: 10_000,
      receiveBatch: RECEIVE_MAX,
      settleBatch: 10_000,
    },
  }
}
