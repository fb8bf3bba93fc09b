import { type Cluster, topicOf } from './client.ts'
import type { Place } from './options.ts'

/** Notices that a topic has other partitions than its group has shared out. Without it nobody reads them until the next rebalance. */
export interface GrowthWatch {
  /** Asks the brokers now and then. @param shared how many were shared out; undefined for all but the leader, who shares out */
  look(shared: number | undefined): void
}

export interface GrowthWatchParts {
  readonly cluster: Cluster
  readonly queue: string
  readonly place: Place
  readonly onChanged: () => void
}

export function growthWatch({ cluster, queue, place, onChanged }: GrowthWatchParts): GrowthWatch {
  const { asking, clock, logger, options } = cluster
  let lookedAt = clock.now()
  let isLooking = false

  const compare = async (shared: number): Promise<void> => {
    const found = await topicOf(cluster, asking, queue, place.topic, { forceUpdate: true })
    const { partitionsCount } = found
    if (partitionsCount === shared) return
    const numbers = `${partitionsCount} partitions now, ${shared} were shared out`
    logger.info(`kafka: topic "${place.topic}" has ${numbers}; they are shared out again`)
    onChanged()
  }
  return {
    look: (shared) => {
      if (shared === undefined || isLooking) return
      if (clock.now() - lookedAt < options.metadataMaxAgeMs) return
      lookedAt = clock.now()
      isLooking = true
      void compare(shared)
        // What keeps a topic from being looked at keeps it from being read, and the fetcher says so.
        .catch(() => {})
        .finally(() => {
          isLooking = false
        })
    },
  }
}
