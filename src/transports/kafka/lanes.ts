import { pause } from '../../model/clock.ts'
import { type BeginningsParts, openBeginnings } from './beginnings.ts'
import { drains } from './drains.ts'
import type { Lane } from './lane.ts'

/** The partitions that this consumer has, and how they come and go. */
export interface Lanes {
  all(): Iterable<Lane>
  owned(): readonly number[]
  /**
   * The group's word: begins what is new, and gives up what is no longer ours once its handlers have ended.
   *
   * @param addedFrom see `firstAdded`
   */
  assigned(partitions: readonly number[], addedFrom: number | undefined): void
  /** Nothing more is handed out, and what is settled is said to be ended; bounded in time. */
  endAll(): Promise<void>
  /** Its position is none of its log: it is lost, and its partition begins again at the first message that is kept. */
  restart(lane: Lane): void
  /** All are lost at once. */
  loseAll(): void
  /** A commit was confirmed. */
  onCommitted(): void
}

export interface LanesParts extends Omit<BeginningsParts, 'onBegun'> {
  /** There is a new lane. */
  readonly onBegun: () => void
  /** Lanes were given up, and others may have them; or there may be other partitions. */
  readonly onGivenUp: () => void
}

export function openLanes(parts: LanesParts): Lanes {
  const { cluster, closing, marks, onGivenUp } = parts
  const { clock, options } = cluster
  const lanes = new Map<number, Lane>()
  const beginnings = openBeginnings({
    ...parts,
    onBegun: (begun) => {
      for (const lane of begun) lanes.set(lane.partition, lane)
      parts.onBegun()
    },
  })
  const drained = drains()

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
    owned: () => [...lanes.keys(), ...beginnings.partitions()],
    assigned: (partitions, addedFrom) => {
      const gone = [...lanes.values()].filter(
        ({ partition, isEnding }) => !isEnding && !partitions.includes(partition),
      )
      // What had not begun was said to be ours, so it was given to nobody else: that is over at once.
      const unbegun = beginnings.partitions().filter((one) => !partitions.includes(one))
      const unknown = partitions.filter((partition) => !lanes.has(partition))
      beginnings.only(unknown, addedFrom)
      if (gone.length + unbegun.length > 0) void Promise.all(gone.map(giveUp)).then(onGivenUp)
    },
    restart: (lane) => {
      const { partition } = lane
      if (lanes.get(partition) !== lane || lane.isEnding) return
      lane.lose()
      lanes.delete(partition)
      drained.look()
      beginnings.addAnew(partition)
      // A topic that was made anew may have more partitions, or fewer: they are shared out again.
      onGivenUp()
    },
    endAll: () => {
      for (const lane of lanes.values()) lane.end()
      return marks.ended([...lanes.values()])
    },
    loseAll: () => {
      beginnings.only([])
      for (const lane of lanes.values()) lane.lose()
      lanes.clear()
      drained.look()
    },
    onCommitted: drained.look,
  }
}
