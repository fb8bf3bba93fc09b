import type { HeldSlot, SlotAnswer, SlotCount, SlotLimits, SlotRequest } from './slots.ts'

/** The slots of one pool in the memory of this process: of `memoryStore`, and of limits that only one process keeps. */
export interface SlotTable {
  acquire(
    limits: SlotLimits,
    batch: readonly SlotRequest[],
    endsAt: number,
    now: number,
  ): readonly SlotAnswer[]
  renew(slots: readonly HeldSlot[], endsAt: number, now: number): readonly boolean[]
  release(slots: readonly HeldSlot[]): void
  count(keysMax: number, now: number): SlotCount
  /** Removes up to `max` that have ended; answers how many. */
  prune(now: number, max: number): number
}

interface Slot {
  readonly key: string | undefined
  readonly fence: bigint
  endsAt: number
}

export function slotTable(nextFence: () => bigint): SlotTable {
  const slots = new Map<string, Slot>()
  const heldByKey = new Map<string, number>()

  const add = (holder: string, slot: Slot): void => {
    slots.set(holder, slot)
    if (slot.key !== undefined) heldByKey.set(slot.key, (heldByKey.get(slot.key) ?? 0) + 1)
  }
  const remove = (holder: string, { key }: Slot): void => {
    slots.delete(holder)
    if (key === undefined) return
    const left = (heldByKey.get(key) ?? 0) - 1
    if (left > 0) heldByKey.set(key, left)
    else heldByKey.delete(key)
  }
  const prune = (now: number, max: number): number => {
    let pruned = 0
    for (const [holder, slot] of slots) {
      if (pruned >= max) break
      if (slot.endsAt > now) continue
      remove(holder, slot)
      pruned += 1
    }
    return pruned
  }
  const own = ({ holder, fence }: HeldSlot): Slot | undefined => {
    const slot = slots.get(holder)
    return slot?.fence === fence ? slot : undefined
  }
  const acquireOne = (
    { max = Number.POSITIVE_INFINITY, maxPerKey = Number.POSITIVE_INFINITY }: SlotLimits,
    { holder, key }: SlotRequest,
    endsAt: number,
  ): SlotAnswer => {
    const before = slots.get(holder)
    if (before !== undefined) {
      before.endsAt = endsAt
      return { as: 'held', fence: before.fence }
    }
    const ofKey = key === undefined ? 0 : (heldByKey.get(key) ?? 0)
    if (key !== undefined && ofKey >= maxPerKey) return { as: 'full', of: 'key' }
    if (slots.size >= max) return { as: 'full', of: 'pool' }
    const fence = nextFence()
    add(holder, { key, fence, endsAt })
    return { as: 'held', fence }
  }

  return {
    acquire(limits, batch, endsAt, now) {
      prune(now, slots.size)
      return batch.map((request) => acquireOne(limits, request, endsAt))
    },
    renew: (held, endsAt, now) =>
      held.map((one) => {
        const slot = own(one)
        if (slot === undefined || slot.endsAt <= now) return false
        slot.endsAt = endsAt
        return true
      }),
    release(held) {
      for (const one of held) {
        const slot = own(one)
        if (slot !== undefined) remove(one.holder, slot)
      }
    },
    count(keysMax, now) {
      prune(now, slots.size)
      const keys = [...heldByKey].map(([key, held]) => ({ key, held }))
      keys.sort((a, b) => b.held - a.held || (a.key < b.key ? -1 : 1))
      return { held: slots.size, keys: keys.slice(0, keysMax) }
    },
    prune,
  }
}
