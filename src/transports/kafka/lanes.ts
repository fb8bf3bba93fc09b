import { pause } from '../../model/clock.ts'
import type { Cluster } from './client.ts'
import { isDrained, type Lane, newLane, type Start } from './lane.ts'

/** The partitions that this consumer has, and how they come and go. */
export interface Lanes {
  all(): Iterable<Lane>
  owned(): readonly number[]
  /** The group's word: begins what is new, and gives up what is no longer ours once its handlers have ended. */
  assigned(partitions: readonly number[]): void
  /** All are lost at once. */
  loseAll(): void
  /** A commit was confirmed. */
  onCommitted(): void
}

export interface LanesParts {
  readonly cluster: Cluster
  readonly closing: AbortSignal
  readonly startsOf: (partitions: readonly number[]) => Promise<ReadonlyMap<number, Start>>
  /** There is a new lane. */
  readonly onBegun: () => void
  /** Lanes were given up, and others may have them. */
  readonly onGivenUp: () => void
}

const AGAIN_MS = 200

export function openLanes(parts: LanesParts): Lanes {
  const { cluster, closing, startsOf, onBegun, onGivenUp } = parts
  const { clock, options } = cluster
  const lanes = new Map<number, Lane>()
  /** Assigned, and where it begins is being asked. */
  let beginning = new Set<number>()
  let round = 0
  const hearers = new Set<() => void>()

  const begin = async (partitions: readonly number[], mine: number): Promise<void> => {
    for (;;) {
      try {
        const starts = await startsOf(partitions)
        if (mine !== round || closing.aborted) return
        for (const [partition, start] of starts) lanes.set(partition, newLane(partition, start))
        beginning = new Set()
        onBegun()
        return
      } catch (error) {
        if (mine !== round || closing.aborted) return
        cluster.logger.warn('kafka: cannot ask for the positions of a group', { error })
        await pause(clock, AGAIN_MS, closing)
      }
    }
  }
  const drained = (lane: Lane): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!isDrained(lane) && !lane.claim.lost.aborted) return
        hearers.delete(look)
        resolve()
      }
      hearers.add(look)
      look()
    })
  const giveUp = async (lane: Lane): Promise<void> => {
    lane.end()
    const enough = new AbortController()
    closing.addEventListener('abort', () => enough.abort(), { once: true })
    await Promise.race([drained(lane), pause(clock, options.revokeDrainMs, enough.signal)])
    enough.abort()
    lane.lose()
    if (lanes.get(lane.partition) === lane) lanes.delete(lane.partition)
  }
  return {
    all: () => lanes.values(),
    owned: () => [...lanes.keys(), ...beginning],
    assigned: (partitions) => {
      round += 1
      const gone = [...lanes.values()].filter(
        ({ partition, isEnding }) => !isEnding && !partitions.includes(partition),
      )
      // What had not begun was said to be ours, so it was given to nobody else: that is over at once.
      const unbegun = [...beginning].filter((partition) => !partitions.includes(partition))
      if (gone.length + unbegun.length > 0) void Promise.all(gone.map(giveUp)).then(onGivenUp)
      const fresh = partitions.filter((partition) => !lanes.has(partition))
      beginning = new Set(fresh)
      if (fresh.length > 0) void begin(fresh, round)
    },
    loseAll: () => {
      round += 1
      beginning = new Set()
      for (const lane of lanes.values()) lane.lose()
      lanes.clear()
      for (const hear of [...hearers]) hear()
    },
    onCommitted: () => {
      for (const hear of [...hearers]) hear()
    },
  }
}
