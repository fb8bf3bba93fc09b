import type { Delivery } from '../model/delivery.ts'

/** How many slots of a worker are taken, by what runs and by what is to run. */
export interface SlotCount {
  take(delivery: Delivery): void
  /** Once for each `take`. */
  free(delivery: Delivery): void
  /** For one that does not run yet. The answer frees it, and is called once. */
  reserve(delivery: Delivery, onFreed: () => void): () => void
  readonly taken: number
  /** One of them must have no neighbours. */
  readonly alone: boolean
}

export function slotCount(): SlotCount {
  let taken = 0
  let alone = 0
  const take = (delivery: Delivery): void => {
    taken++
    if (delivery.alone) alone++
  }
  const free = (delivery: Delivery): void => {
    taken--
    if (delivery.alone) alone--
  }
  return {
    take,
    free,
    reserve: (delivery, onFreed) => {
      take(delivery)
      return () => {
        free(delivery)
        onFreed()
      }
    },
    get taken() {
      return taken
    },
    get alone() {
      return alone > 0
    },
  }
}
