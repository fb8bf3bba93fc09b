import type { Claim, Delivery } from '../model/delivery.ts'

/** One lane in the hands of this consumer: what waits, what runs, and what failed and keeps the others waiting. */
export interface HeldLane {
  readonly claim: Claim
  readonly name: string
  add(deliveries: readonly Delivery[]): void
  /** Up to `max` that may run now. While one is held, nothing but it; of one ordering key, one at a time. */
  take(max: number): readonly Delivery[]
  /** It failed: once the result is called, it runs again, before anything else of its lane. */
  hold(delivery: Delivery): () => void
  /** It ended; its key and its lane are free again. */
  end(delivery: Delivery): void
  /** As it was handed out; undefined when it does not run. */
  running(delivery: Delivery): Delivery | undefined
  /** Nothing should come for it until it moves on. */
  isFull(): boolean
}

/** So many wait behind others of their key or behind a held one; then nothing more is asked for. */
export const WAITING_MAX: number = 100

interface Held {
  readonly delivery: Delivery
  isDue: boolean
}

export function heldLane(claim: Claim, name: string): HeldLane {
  let waiting: readonly Delivery[] = []
  let held: readonly Held[] = []
  const running = new Map<bigint, Delivery>()
  /** Ran and failed at least once, and has not ended: what comes behind waits. */
  const troubled = new Set<bigint>()

  const takeHeld = (max: number): readonly Delivery[] => {
    const due = held.filter(({ isDue }) => isDue).slice(0, max)
    held = held.filter((one) => !due.includes(one))
    return due.map(({ delivery }) => delivery)
  }
  const takeWaiting = (max: number): readonly Delivery[] => {
    const busy = new Set([...running.values()].map(({ envelope }) => envelope.orderingKey))
    const taken = new Set<Delivery>()
    for (const delivery of waiting) {
      if (taken.size >= max) break
      const { orderingKey } = delivery.envelope
      if (orderingKey !== undefined && busy.has(orderingKey)) continue
      busy.add(orderingKey)
      taken.add(delivery)
    }
    waiting = waiting.filter((one) => !taken.has(one))
    return [...taken]
  }
  return {
    claim,
    name,
    add: (deliveries) => {
      waiting = [...waiting, ...deliveries]
    },
    take: (max) => {
      const taken = troubled.size > 0 ? takeHeld(max) : takeWaiting(max)
      for (const one of taken) running.set(one.position ?? -1n, one)
      return taken
    },
    hold: (delivery) => {
      const { position = -1n } = delivery
      running.delete(position)
      troubled.add(position)
      const one: Held = { delivery, isDue: false }
      held = [...held, one].sort((a, b) =>
        Number((a.delivery.position ?? 0n) - (b.delivery.position ?? 0n)),
      )
      return () => {
        one.isDue = true
      }
    },
    end: ({ position = -1n }) => {
      running.delete(position)
      troubled.delete(position)
    },
    running: ({ position = -1n }) => running.get(position),
    isFull: () => troubled.size > 0 || waiting.length >= WAITING_MAX,
  }
}
