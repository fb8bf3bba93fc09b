import type { Delivery, Settled } from '../model/delivery.ts'
import type { Fault } from '../model/fault.ts'
import { asFaults, lost } from '../transport/outcomes.ts'
import { byGroup } from './by-group.ts'
import type { InHand, LevelLine } from './level-line.ts'
import { withoutDelay } from './ready-since.ts'

/** Deliveries as they leave the levels, and the way back: each is settled where it came from. */
export interface HandedOut {
  out(one: InHand): Delivery
  /** Calls `act` for each level with what came from it. What is none of ours is lost. */
  byLevel<Item>(batch: readonly Item[], routing: Routing<Item>): Promise<readonly Settled[]>
}

export interface Routing<Item> {
  readonly deliveryOf: (item: Item) => Delivery
  /** The item for the transport below. */
  readonly inward: (item: Item, delivery: Delivery) => Item
  readonly act: (line: LevelLine, some: readonly Item[]) => Promise<readonly Settled[]>
  readonly diagnose: (error: unknown) => Fault
}

export function handedOut(): HandedOut {
  /** By the receipts that we give. */
  const places = new WeakMap<object, { readonly line: LevelLine; readonly receipt: unknown }>()
  const placeOf = ({ receipt }: Delivery) =>
    typeof receipt === 'object' && receipt !== null ? places.get(receipt) : undefined

  return {
    out: ({ line, delivery }) => {
      const receipt = Object.freeze({ level: line.level })
      places.set(receipt, { line, receipt: delivery.receipt })
      const envelope = { ...withoutDelay(delivery.envelope), priority: line.level }
      return { ...delivery, envelope, receipt }
    },
    byLevel: (batch, { deliveryOf, inward, act, diagnose }) =>
      byGroup(
        batch,
        (item) => placeOf(deliveryOf(item))?.line,
        async (line, some, isAll) => {
          if (line === undefined) return some.map(() => lost)
          const inner = some.map((item) => {
            const delivery = deliveryOf(item)
            const { receipt } = placeOf(delivery) ?? {}
            const envelope = { ...delivery.envelope, priority: 0 }
            return inward(item, { ...delivery, envelope, receipt })
          })
          const acting = act(line, inner)
          // What the other levels answered must not be lost with it.
          return isAll ? acting : acting.catch(asFaults(diagnose, some.length))
        },
      ),
  }
}
