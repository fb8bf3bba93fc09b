import type { EnvelopeBounds } from '../../transport/refusal.ts'
import type { Traits } from '../../transport/traits.ts'

const HOUR_MS = 3_600_000

/** Ten years and their leap days. */
export const DELAY_MAX_MS: number = 3_653 * 24 * HOUR_MS

/** What every SQLite transport takes. */
export const sqliteBounds: EnvelopeBounds = {
  delay: { maxMs: DELAY_MAX_MS },
  priorities: 10,
  limits: {
    bodyBytes: 16 * 1024 * 1024,
    sendBatch: 10_000,
    receiveBatch: 1_000,
    settleBatch: 10_000,
  },
}

export function sqliteTraits(durability: Traits['durability']): Traits {
  return {
    ...sqliteBounds,
    settles: 'each',
    claim: { kind: 'lease', maxMs: 24 * HOUR_MS },
    release: 'delayed',
    uncountedRelease: true,
    counts: 'deliveries',
    keepsHistory: true,
    countsCrashes: true,
    order: 'none',
    dedupe: { windowMs: 'any' },
    deadLetters: 'native',
    capacity: 'exact',
    atomicBatch: true,
    remembersIds: true,
    clock: 'caller',
    durability,
  }
}
