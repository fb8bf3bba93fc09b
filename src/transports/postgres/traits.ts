import type { Traits } from '../../transport/traits.ts'

const HOUR_MS = 3_600_000

/** Ten years and their leap days. */
export const DELAY_MAX_MS: number = 3_653 * 24 * HOUR_MS
export const RECEIVE_MAX = 1_000

export const postgresTraits: Traits = {
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
  deadLetters: 'native',
  priorities: 10,
  capacity: 'sampled',
  atomicBatch: true,
  remembersIds: true,
  clock: 'server',
  durability: 'disk',
  limits: {
    bodyBytes: 16 * 1024 * 1024,
    sendBatch: 10_000,
    receiveBatch: RECEIVE_MAX,
    settleBatch: 10_000,
  },
}
