import type { BlobStore } from '../blobs/blob-store.ts'
import type { Clock } from '../model/clock.ts'
import { messageOfError } from '../model/describe-error.ts'
import { withinLimit } from '../transport/within-limit.ts'
import { namesBefore } from './blob-reference.ts'

export interface BlobSweep {
  /** Of the store. */
  readonly name: string
  /** Asks for one name: whether the store is there, and lets us in. */
  reach(): Promise<void>
  /** Removes up to `max` blobs whose time is over; answers how many. */
  prune(max: number): Promise<number>
  /** That it failed when it was last asked. */
  problems(): readonly string[]
}

export interface BlobSweepOptions {
  readonly blobs: BlobStore
  /** How long after its message became ready a blob is kept. */
  readonly keepMs: number
  readonly clock: Clock
}

/** One small question; an app that starts waits for it. */
const REACH_MAX_MS = 5_000
/** A sweep must not wait for ever for a store that hangs. */
const SWEEP_MAX_MS = 60_000

/**
 * Blobs go by age and never with the ack: a duplicate or a redriven dead letter may still ask for them. What a crash between blob
 * and message left behind goes the same way.
 */
export function blobSweep({ blobs, keepMs, clock }: BlobSweepOptions): BlobSweep {
  let problem: string | undefined
  const ask = async <T>(limitMs: number, call: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const ends = new AbortController()
    const late = (): Error => {
      const error = new Error(`no answer within ${limitMs} ms`)
      ends.abort(error)
      return error
    }
    try {
      const answer = await withinLimit(call(ends.signal), { clock, limitMs, late, ends: [] })
      problem = undefined
      return answer
    } catch (error) {
      problem = `the blob store ${blobs.name} fails (${messageOfError(error)})`
      throw error
    }
  }
  return {
    name: blobs.name,
    reach: async () => {
      await ask(REACH_MAX_MS, (signal) => blobs.list({ before: '0', max: 1 }, signal))
    },
    prune: (max) =>
      ask(SWEEP_MAX_MS, async (signal) => {
        const before = namesBefore(clock.now() - keepMs)
        const names = await blobs.list({ before, max }, signal)
        if (names.length > 0) await blobs.remove(names, signal)
        return names.length
      }),
    problems: () => (problem === undefined ? [] : [problem]),
  }
}
