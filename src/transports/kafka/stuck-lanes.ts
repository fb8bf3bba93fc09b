import { pause } from '../../model/clock.ts'
import { MillraceError } from '../../model/errors.ts'
import type { Unreadable } from './batches.ts'
import type { Cluster } from './client.ts'
import type { Lane } from './lane.ts'
import type { Place } from './options.ts'

/** Lanes of which nothing can be read now, each by itself. */
export interface StuckLanes {
  /** Rests it for a while; said in the log once for each place. */
  add(lane: Lane, stuck: Unreadable): void
  /** Something was read of it. */
  clear(lane: Lane): void
  isResting(lane: Lane): boolean
  /** A sentence for each. */
  problems(): readonly string[]
}

interface Stuck {
  readonly at: bigint
  readonly problem: string
  readonly restMs: number
  isResting: boolean
}

/** A copy on another broker may be whole, and a client may be updated: it is tried again, not often. */
const REST_MS = 1_000
const REST_MAX_MS = 60_000

export function stuckLanes(
  cluster: Cluster,
  place: Place,
  closing: AbortSignal,
  onRested: () => void,
): StuckLanes {
  const all = new Map<Lane, Stuck>()
  const rest = async (stuck: Stuck): Promise<void> => {
    await pause(cluster.clock, stuck.restMs, closing)
    stuck.isResting = false
    onRested()
  }
  return {
    add: (lane, unreadable) => {
      const before = all.get(lane)
      const isKnown = before?.at === unreadable.offset
      const restMs = isKnown ? Math.min(REST_MAX_MS, 2 * before.restMs) : REST_MS
      const problem = problemOf(place, lane.partition, unreadable)
      if (!isKnown) {
        const { topic } = place
        const { offset, next } = unreadable
        const fields = { topic, partition: lane.partition, offset, next }
        const error = new MillraceError('MILLRACE_UNREADABLE_BATCH', problem, { fields })
        cluster.logger.error(problem, { ...fields, error })
      }
      const stuck = { at: unreadable.offset, problem, restMs, isResting: true }
      all.set(lane, stuck)
      void rest(stuck)
    },
    clear: (lane) => {
      if (!all.delete(lane)) return
      cluster.logger.warn(
        `kafka: partition ${lane.partition} of topic "${place.topic}" can be read again`,
      )
    },
    isResting: (lane) => all.get(lane)?.isResting === true,
    problems: () => {
      for (const lane of all.keys()) if (lane.claim.lost.aborted) all.delete(lane)
      return [...all.values()].map(({ problem }) => problem)
    },
  }
}

function problemOf(
  { topic, group }: Place,
  partition: number,
  { offset, next, why }: Unreadable,
): string {
  const to = next === undefined ? 'of the batch behind it' : `${next}`
  return `kafka: partition ${partition} of topic "${topic}" stands still at offset ${offset}: what is there cannot be read, ${why}; it stays in the topic for its retention and is tried again. To leave it out, stop the workers and set group "${group}" to offset ${to} (kafka-consumer-groups.sh --reset-offsets --topic ${topic}:${partition} --to-offset …)`
}
