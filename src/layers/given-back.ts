import type { Claim, Delivery } from '../model/delivery.ts'

/** Deliveries that wait to be handed out again by the consumer that has their lane. */
export interface GivenBack {
  add(delivery: Delivery): void
  has(claim: Claim, position: bigint): boolean
  /** In the order of their positions; what is lost meanwhile is dropped. */
  take(max: number): readonly Delivery[]
  pause(lane: string, paused: boolean): void
}

export function givenBack(): GivenBack {
  let waiting: readonly Delivery[] = []
  const paused = new Set<string>()
  const isFree = ({ lane }: Delivery): boolean => lane === undefined || !paused.has(lane)
  return {
    add: (delivery) => {
      const { position = 0n } = delivery
      const at = waiting.findIndex((one) => (one.position ?? 0n) > position)
      waiting = waiting.toSpliced(at < 0 ? waiting.length : at, 0, delivery)
    },
    has: (claim, position) =>
      waiting.some((one) => one.claim === claim && one.position === position),
    take: (max) => {
      if (waiting.length === 0) return []
      waiting = waiting.filter(({ claim }) => !claim.lost.aborted)
      const taken = new Set(waiting.filter(isFree).slice(0, max))
      waiting = waiting.filter((one) => !taken.has(one))
      return [...taken]
    },
    pause: (lane, isPaused) => void (isPaused ? paused.add(lane) : paused.delete(lane)),
  }
}

/** Where it is known that this was its first handing out, it no longer is. */
export function handedOutAgain(delivery: Delivery): Delivery {
  const { deliveries } = delivery
  return { ...delivery, deliveries: deliveries && deliveries + 1 }
}
