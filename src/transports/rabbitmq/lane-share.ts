import type { LaneConsumer } from './lane-consumer.ts'

/** Of a lane that this subscription takes part in, what decides whether it should be somebody else's. */
export type LaneSight = Pick<LaneConsumer, 'isActive' | 'isBusy' | 'isHolding' | 'isOn' | 'window'>

export interface Sharing {
  /** Subscriptions that ask now, this one included; undefined when the broker did not say. */
  readonly askers: number | undefined
  /** Lanes of the queue. */
  readonly lanes: number
  /** What a consumer that begins now may be pushed. */
  readonly window: number
}

/**
 * Which lanes this subscription should give up once nothing runs there: those above its even share, rounded up, idle ones first;
 * and those that were begun with a window that is too small, or far too large. One in which a failed message waits for its moment stays: with the next
 * holder it would come at once.
 */
export function toGiveUp<L extends LaneSight>(
  lanes: readonly L[],
  { askers, lanes: count, window }: Sharing,
): ReadonlySet<L> {
  const free = lanes.filter((lane) => lane.isOn() && !lane.isHolding())
  const share = Math.ceil(count / Math.max(1, askers ?? 1))
  const excess = Math.max(0, lanes.filter((lane) => lane.isActive()).length - share)
  const above = free
    .filter((lane) => lane.isActive())
    .toSorted((a, b) => Number(a.isBusy()) - Number(b.isBusy()))
    .slice(0, excess)
  const isOff = (has: number): boolean => has < window || has >= window * FAR
  return new Set([...free.filter((lane) => isOff(lane.window())), ...above])
}

/** A lane that is begun anew returns what it has, so one that adapts up and down must not do so each time. */
const FAR = 4
