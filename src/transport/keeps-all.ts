import type { Traits } from './traits.ts'

const HOUR_MS = 3_600_000

/** Ten years and their leap days. */
export const DELAY_MAX_MS: number = 3_653 * 24 * HOUR_MS
export const RECEIVE_MAX = 1_000

/** What a transport does by itself whose layout is ours: a database, Redis, memory. */
export const keepsAll: Omit<Traits, 'order' | 'priorities' | 'capacity' | 'clock' | 'durability'> =
  {
    settles: 'each',
    claim: { kind: 'lease', maxMs: 24 * HOUR_MS },
    release: 'delayed',
    uncountedRelease: true,
    counts: 'deliveries',
    keepsHistory: true,
    countsCrashes: true,
    delay: { maxMs: DELAY_MAX_MS },
    dedupe: { windowMs: 'any' },
    deadLetters: 'native',
    atomicBatch: true,
    remembersIds: true,
    limits: {
      bodyBytes: 16 * 1024 * 1024,
      sendBatch: 10_000,
      receiveBatch: RECEIVE_MAX,
      settleBatch: 10_000,
    },
  }
