import type { BlobStore } from '../blobs/blob-store.ts'
import type { Clock } from '../model/clock.ts'
import { namesBefore } from './blob-reference.ts'

export interface BlobSweep {
  /** Removes up to `max` blobs whose time is over; answers how many. */
  prune(max: number): Promise<number>
}

export interface BlobSweepOptions {
  readonly blobs: BlobStore
  /** How long after its message became ready a blob is kept. */
  readonly keepMs: number
  readonly clock: Clock
}

/**
 * Blobs go by age and never with the ack: a duplicate or a redriven dead letter may still ask for them. What a crash between blob
 * and message left behind goes the same way.
 */
export function blobSweep({ blobs, keepMs, clock }: BlobSweepOptions): BlobSweep {
  const { signal } = new AbortController()
  return {
    prune: async (max) => {
      const before = namesBefore(clock.now() - keepMs)
      const names = await blobs.list({ before, max }, signal)
      if (names.length > 0) await blobs.remove(names, signal)
      return names.length
    },
  }
}
