import type { Delivery } from '../model/delivery.ts'

/** How many slots of a worker are taken, by what runs and by what is to run, and what is being settled. */
export interface SlotCount {
  take(delivery: Delivery): void
  /** For one that does not run yet. The answer frees the slot, once: by then it runs in one of its own, or is being settled. */
  reserve(delivery: Delivery, onFreed: () => void): () => void
  /** One that took a slot runs no longer: the slot is free, and it is being settled. */
  ended(delivery: Delivery): void
  /** One without a slot is being settled: it is known already, dead, or goes back. */
  settle(delivery: Delivery): void
  settled(delivery: Delivery): void
  /** Its settlement waits for somebody's open transaction, which may be open for hours: it keeps no neighbours away any more. */
  held(delivery: Delivery): void
  readonly taken: number
  readonly settling: number
  /** One of them must have no neighbours until it is settled or held: before that, the death of another would be blamed on it. */
  readonly alone: boolean
}

export function slotCount(): SlotCount {
  const alone = new Set<Delivery>()
  let taken = 0
  let settling = 0
  const take = (delivery: Delivery): void => {
    taken++
    if (delivery.alone) alone.add(delivery)
  }
  return {
    take,
    reserve: (delivery, onFreed) => {
      take(delivery)
      return () => {
        taken--
        onFreed()
      }
    },
    ended: () => {
      taken--
      settling++
    },
    settle: (delivery) => {
      settling++
      if (delivery.alone) alone.add(delivery)
    },
    settled: (delivery) => {
      settling--
      alone.delete(delivery)
    },
    held: (delivery) => void alone.delete(delivery),
    get taken() {
      return taken
    },
    get settling() {
      return settling
    },
    get alone() {
      return alone.size > 0
    },
  }
}
