import type { Clock } from '../model/clock.ts'
import type { Delivery } from '../model/delivery.ts'
import type { LineHead } from '../transport/ageing.ts'
import type { ReceiveOptions, Subscription } from '../transport/transport.ts'
import { readySince } from './ready-since.ts'

/** A message that is in hand and was not handed out yet. */
export interface InHand {
  readonly line: LevelLine
  /** As the transport below gave it. */
  readonly delivery: Delivery
  /** Epoch ms since when it is ready. */
  readonly readyAt: number
  /** Epoch ms, when it came. */
  readonly since: number
}

/** One level of a queue: what was received of it and waits for its turn, in the order of the broker. */
export interface LevelLine {
  readonly level: number
  readonly inner: Subscription
  readonly waiting: readonly InHand[]
  head(): (LineHead & { readonly line: LevelLine }) | undefined
  /** There was nothing a moment ago, so it need not be asked again at once. */
  seemsEmpty(): boolean
  /** The last answer was as large as it could be, or is long ago. */
  mayHaveMore(): boolean
  /** What comes waits here then. */
  fetch(options: ReceiveOptions): Promise<readonly InHand[]>
  /** From the front, as long as they were ready by then. */
  take(untilReadyAt: number, max: number): readonly InHand[]
  /** Those that are here. */
  remove(some: readonly InHand[]): void
  /** To the front. */
  putBack(some: readonly InHand[]): void
}

/** A message of a level that was empty may be so late for its turn; each look at an empty level is a call to the broker. */
export const LOOK_MS = 100

export interface LevelLineOptions {
  readonly level: number
  readonly inner: Subscription
  readonly clock: Clock
}

export function levelLine({ level, inner, clock }: LevelLineOptions): LevelLine {
  let waiting: readonly InHand[] = []
  let emptyAt = Number.NEGATIVE_INFINITY
  let answeredAt = Number.NEGATIVE_INFINITY
  let wasFull = true

  const line: LevelLine = {
    level,
    inner,
    get waiting() {
      return waiting
    },
    head: () => {
      const [first] = waiting
      return first && { priority: level, readyAt: first.readyAt, line }
    },
    seemsEmpty: () => waiting.length === 0 && clock.now() - emptyAt < LOOK_MS,
    mayHaveMore: () => wasFull || clock.now() - answeredAt >= LOOK_MS,
    fetch: async (options) => {
      const askedAt = clock.now()
      const came = await inner.receive(options)
      const now = clock.now()
      // One that was ended early may not have looked; one that waited would have answered.
      const hasLooked = !options.signal.aborted || now - askedAt >= LOOK_MS
      if (came.length > 0) emptyAt = Number.NEGATIVE_INFINITY
      else if (hasLooked) emptyAt = now
      answeredAt = now
      wasFull = came.length >= options.max
      const arrived = came.map((delivery) => ({
        ...{ line, delivery, since: now },
        readyAt: readySince(delivery),
      }))
      waiting = [...waiting, ...arrived]
      return arrived
    },
    take: (untilReadyAt, max) => {
      const end = waiting.findIndex(({ readyAt }) => readyAt > untilReadyAt)
      const taken = waiting.slice(0, Math.min(max, end < 0 ? waiting.length : end))
      waiting = waiting.slice(taken.length)
      return taken
    },
    remove: (some) => {
      const gone = new Set(some)
      waiting = waiting.filter((one) => !gone.has(one))
    },
    putBack: (some) => {
      waiting = [...some, ...waiting]
    },
  }
  return line
}
