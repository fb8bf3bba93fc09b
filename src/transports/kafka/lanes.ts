import { pause } from '../../model/clock.ts'
import type { Cluster } from './client.ts'
import { drains } from './drains.ts'
import { type Lane, newLane, type Start } from './lane.ts'
import type { LaneMarks } from './lane-marks.ts'

/** The partitions that this consumer has, and how they come and go. */
export interface Lanes {
  all(): Iterable<Lane>
  owned(): readonly number[]
  /** The group's word: begins what is new, and gives up what is no longer ours once its handlers have ended. */
  assigned(partitions: readonly number[]): void
  /** Nothing more is handed out, and what is settled is said to be ended; bounded in time. */
  endAll(): Promise<void>
  /** All are lost at once. */
  loseAll(): void
  /** A commit was confirmed. */
  onCommitted(): void
}

export interface LanesParts {
  readonly cluster: Cluster
  readonly closing: AbortSignal
  readonly startsOf: (partitions: readonly number[]) => Promise<ReadonlyMap<number, Start>>
  readonly marks: LaneMarks
  /** See `Member.isOver`. */
  readonly isOver: () => boolean
  /** There is a new lane. */
  readonly onBegun: () => void
  /** Lanes were given up, and others may have them. */
  readonly onGivenUp: () => void
}

const AGAIN_MS = 200

export function openLanes(parts: LanesParts): Lanes {
  const { cluster, closing, startsOf, marks, isOver, onBegun, onGivenUp } = parts
  const { clock, options } = cluster
  const lanes = new Map<number, Lane>()
  /** Assigned, and where it begins is being asked. */
  let beginning = new Set<number>()
  /** Of these, what is not handed out yet because it must be marked first. */
  let unmarked: readonly Lane[] = []
  let round = 0
  const drained = drains()

  const begin = async (partitions: readonly number[], mine: number): Promise<void> => {
    for (;;) {
      try {
        const starts = [...(await startsOf(partitions))]
        if (mine !== round || closing.aborted) return
        const begun = starts.map(([partition, start]) => newLane(partition, start, isOver))
        unmarked = begun.filter((_, at) => starts[at]?.[1].isHeld === false)
        await marks.held(unmarked)
        if (mine !== round || closing.aborted) return
        for (const lane of begun) lanes.set(lane.partition, lane)
        unmarked = []
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
  /** What another round began must not be committed by this one, when somebody else may have it. */
  const nextRound = (): void => {
    round += 1
    for (const lane of unmarked) lane.lose()
    unmarked = []
  }
  const giveUp = async (lane: Lane): Promise<void> => {
    lane.end()
    const enough = new AbortController()
    closing.addEventListener('abort', () => enough.abort(), { once: true })
    await Promise.race([drained.of(lane), pause(clock, options.revokeDrainMs, enough.signal)])
    enough.abort()
    await marks.ended([lane])
    lane.lose()
    if (lanes.get(lane.partition) === lane) lanes.delete(lane.partition)
  }
  return {
    all: () => lanes.values(),
    owned: () => [...lanes.keys(), ...beginning],
    assigned: (partitions) => {
      nextRound()
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
    endAll: () => {
      for (const lane of lanes.values()) lane.end()
      return marks.ended([...lanes.values()])
    },
    loseAll: () => {
      nextRound()
      beginning = new Set()
      for (const lane of lanes.values()) lane.lose()
      lanes.clear()
      drained.look()
    },
    onCommitted: drained.look,
  }
}
