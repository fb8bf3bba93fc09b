import { pause } from '../../model/clock.ts'
import type { Cluster } from './client.ts'
import { type Lane, newLane, type Start } from './lane.ts'
import type { LaneMarks } from './lane-marks.ts'
import type { Earlier } from './offsets.ts'

/** Partitions that are ours and of which nothing is handed out yet: where they begin is being asked, and written down. */
export interface Beginnings {
  partitions(): readonly number[]
  /** These begin, and no others any more. @param addedFrom see `firstAdded` */
  only(partitions: readonly number[], addedFrom?: number): void
  /** This one begins too, at the first message that is kept: its committed position says nothing. */
  addAnew(partition: number): void
}

export interface BeginningsParts {
  readonly cluster: Cluster
  readonly closing: AbortSignal
  readonly startsOf: (
    partitions: readonly number[],
    earlier: Earlier,
  ) => Promise<ReadonlyMap<number, Start>>
  readonly marks: LaneMarks
  /** See `Member.isOver`. */
  readonly isOver: () => boolean
  readonly onBegun: (lanes: readonly Lane[]) => void
}

const AGAIN_MS = 200

export function openBeginnings(parts: BeginningsParts): Beginnings {
  const { cluster, closing, startsOf, marks, isOver, onBegun } = parts
  const beginning = new Set<number>()
  /** Of these, whose committed position says nothing. */
  const anew = new Set<number>()
  /** Of these, what is not handed out yet because it must be marked first. */
  const unmarked = new Set<Lane>()
  let round = 0
  let addedFrom: number | undefined

  const mark = async (lanes: readonly Lane[]): Promise<void> => {
    for (const lane of lanes) unmarked.add(lane)
    try {
      await marks.held(lanes)
    } finally {
      for (const lane of lanes) unmarked.delete(lane)
    }
  }
  const begin = async (partitions: readonly number[], mine: number): Promise<void> => {
    const isOld = (): boolean => mine !== round || closing.aborted
    for (;;) {
      try {
        const starts = [...(await startsOf(partitions, { anew, addedFrom }))]
        if (isOld()) return
        const lanes = starts.map(([partition, start]) => newLane(partition, start, isOver))
        await mark(lanes.filter((_, at) => starts[at]?.[1].isHeld === false))
        if (isOld()) return
        for (const partition of partitions) {
          beginning.delete(partition)
          anew.delete(partition)
        }
        onBegun(lanes)
        return
      } catch (error) {
        if (isOld()) return
        cluster.logger.warn('kafka: cannot ask for the positions of a group', { error })
        await pause(cluster.clock, AGAIN_MS, closing)
      }
    }
  }
  return {
    partitions: () => [...beginning],
    only: (partitions, from) => {
      round += 1
      addedFrom = from
      // What another round began must not be committed by this one, when somebody else may have it.
      for (const lane of unmarked) lane.lose()
      beginning.clear()
      for (const partition of partitions) beginning.add(partition)
      for (const partition of anew) if (!beginning.has(partition)) anew.delete(partition)
      if (partitions.length > 0) void begin(partitions, round)
    },
    addAnew: (partition) => {
      beginning.add(partition)
      anew.add(partition)
      void begin([partition], round)
    },
  }
}
