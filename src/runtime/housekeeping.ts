import type { Inbox } from '../inbox/inbox.ts'
import type { Clock } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'

/** Removes expired keys from the inbox, in small batches, now and then. */
export interface Housekeeping {
  stop(): void
}

export interface HousekeepingOptions {
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  readonly inbox: { prune: Inbox<never>['prune'] } | undefined
}

const EVERY_MS = 60_000
const BATCH = 1_000
const BATCHES_MAX = 100

export function startHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { clock, inbox, logger } = options
  if (inbox === undefined) return { stop: () => undefined }
  let stopped = false
  let cancel = (): void => undefined

  const sweep = async (): Promise<void> => {
    try {
      for (let i = 0; i < BATCHES_MAX && !stopped; i++) {
        if ((await inbox.prune(BATCH)) < BATCH) break
      }
    } catch (cause) {
      logger.warn('pruning the inbox failed; trying again later', { cause })
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
