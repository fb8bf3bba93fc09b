import type { Traits } from '../../transport/traits.ts'

const HOUR_MS = 3_600_000

/** Ten years and their leap days. */
export const DELAY_MAX_MS: number = 3_653 * 24 * HOUR_MS

/** Everything that the seam knows, in the memory of one process and gone with it. */
export const memoryTraits: Traits = {
  settles: 'each',
  claim: { kind: 'lease', maxMs: 24 * HOUR_MS },
  release: 'delayed',
  uncountedRelease: true,
  counts: 'deliveries',
  keepsHistory: true,
  countsCrashes: true,
  order: 'perKey',
  delay: { maxMs: DELAY_MAX_MS },
  dedupe: { windowMs: 'any' },
  deadLetters: 'native',
  priorities: 10,
  capacity: 'exact',
  atomicBatch: true,
  remembersIds: true,
  clock: 'caller',
  durability: 'process',
  limits: {
    bodyBytes: 16 * 1024 * 1024,
    sendBatch: 10_000,
    receiveBatch: 1_000,
    settleBatch: 10_000,
  },
}
