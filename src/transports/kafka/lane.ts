import type { Claim, Delivery } from '../../model/delivery.ts'

/** A partition while it is ours. */
export interface Lane {
  readonly partition: number
  readonly name: string
  readonly claim: Claim
  /** Fetched and not handed out. */
  readonly buffer: Buffered
  /** Where the next fetch begins. */
  fetchFrom: bigint
  /** Where the partition ended when something was last fetched of it. */
  readableTo: bigint
  /** The first offset that was not handed out. */
  handedTo: bigint
  /** Confirmed by the broker. */
  committed: bigint
  /** From here on nobody else ever had a message in hand: see `Start`. */
  readonly untouchedFrom: bigint
  /** Nothing is handed out any more: it goes to another consumer. */
  isEnding: boolean
  end(): void
  lose(): void
}

/** First in, first out, without moving what is left for each that goes. */
export interface Buffered {
  readonly size: number
  push(deliveries: readonly Delivery[]): void
  take(max: number): readonly Delivery[]
  clear(): void
}

/** Where a holder begins, and what the one before left. */
export interface Start {
  readonly position: bigint
  readonly note: string
  /** What a vanished holder may have had in hand lies before this; the position itself where the one before ended all, or none was. */
  readonly untouchedFrom: bigint
  /** Whether it is written down with the position that somebody holds it. */
  readonly isHeld: boolean
}

/** @param isOver whether the group may have given our partitions away; then all are lost at once */
export function newLane(
  partition: number,
  { position, note, untouchedFrom }: Start,
  isOver: () => boolean,
): Lane {
  const ending = new AbortController()
  const lost = new AbortController()
  const claim = {
    expiresAt: undefined,
    ending: ending.signal,
    lost: lost.signal,
    isOver: () => lost.signal.aborted || isOver(),
  }
  const lane: Lane = {
    partition,
    name: `${partition}`,
    claim: note === '' ? claim : { ...claim, note },
    buffer: buffered(),
    fetchFrom: position,
    readableTo: position,
    handedTo: position,
    committed: position,
    untouchedFrom,
    isEnding: false,
    end() {
      lane.isEnding = true
      lane.buffer.clear()
      ending.abort()
    },
    lose() {
      lane.end()
      lost.abort()
    },
  }
  return lane
}

function buffered(): Buffered {
  let items: Delivery[] = []
  let next = 0
  return {
    get size() {
      return items.length - next
    },
    push: (deliveries) => {
      items = [...items.slice(next), ...deliveries]
      next = 0
    },
    take: (max) => {
      const taken = items.slice(next, next + max)
      next += taken.length
      if (next === items.length) {
        items = []
        next = 0
      }
      return taken
    },
    clear: () => {
      items = []
      next = 0
    },
  }
}

/** Nothing that was handed out is without a confirmed commit. */
export function isDrained({ handedTo, committed }: Lane): boolean {
  return committed >= handedTo
}
