import type { Clock } from '../model/clock.ts'
import { type SlotTable, slotTable } from './slot-table.ts'
import type { Slots } from './slots.ts'

/** Pools of slots in the memory of this process. */
export interface ProcessSlots extends Slots {
  /** Removes up to `max` that have ended; answers how many. */
  prune(max: number): number
}

/** @param pools by name; those that share it share the slots */
export function processSlots(
  clock: Clock,
  pools: Map<string, SlotTable>,
  nextFence: () => bigint,
): ProcessSlots {
  const tableOf = (pool: string): SlotTable => {
    const table = pools.get(pool) ?? slotTable(nextFence)
    pools.set(pool, table)
    return table
  }
  return {
    async acquire(pool, limits, batch, leaseMs) {
      const now = clock.now()
      return tableOf(pool).acquire(limits, batch, now + leaseMs, now)
    },
    async renew(pool, slots, leaseMs) {
      const now = clock.now()
      return tableOf(pool).renew(slots, now + leaseMs, now)
    },
    release: async (pool, slots) => tableOf(pool).release(slots),
    count: async (pool, keysMax) => tableOf(pool).count(keysMax, clock.now()),
    prune(max) {
      let pruned = 0
      for (const table of pools.values()) pruned += table.prune(clock.now(), max - pruned)
      return pruned
    },
  }
}
