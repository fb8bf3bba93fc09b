import type { Inbox } from '../inbox/inbox.ts'
import type { BlobSweep } from '../layers/blob-sweep.ts'
import type { Clock } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'
import type { Store } from '../store/store.ts'

/** Removes what has ended from inbox, store and blobs, in small batches, now and then. */
export interface Housekeeping {
  stop(): void
}

export interface HousekeepingOptions {
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  readonly parts: {
    readonly inbox: Pick<Inbox<never>, 'prune'> | undefined
    readonly store: Pick<Store, 'prune'> | undefined
    readonly blobs?: BlobSweep | undefined
  }
}

const EVERY_MS = 60_000
const BATCH = 1_000
const BATCHES_MAX = 100

export function startHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { clock, parts, logger } = options
  const { inbox, store, blobs } = parts
  if (inbox === undefined && store === undefined && blobs === undefined)
    return { stop: () => undefined }
  let stopped = false
  let cancel = (): void => undefined

  const sweep = async (): Promise<void> => {
    for (const [what, part] of Object.entries({ inbox, store, blobs })) {
      try {
        for (let i = 0; i < BATCHES_MAX && !stopped && part !== undefined; i++) {
          if ((await part.prune(BATCH)) < BATCH) break
        }
      } catch (cause) {
        // Cut off by the end of the app: nothing is tried again.
        if (stopped) return
        logger.warn(`pruning the ${what} failed; trying again later`, { cause })
      }
    }
    arm()
  }
  // Spread over the fleet, so that a hundred processes do not prune in the same second.
  const arm = (): void => {
    if (!stopped) cancel = clock.after(EVERY_MS * (0.5 + options.random()), () => void sweep())
  }
  arm()
  return {
    stop: () => {
      stopped = true
      cancel()
    },
  }
}
