import type { Clock } from '../../model/clock.ts'
import type { Lease, Leases } from '../../store/leases.ts'
import type { EndingRows } from './ending-rows.ts'

/** @param nextFence for all names together, so that a row may go and the fences of its name still grow */
export function memoryLeases(
  rows: EndingRows<Lease>,
  clock: Clock,
  nextFence: () => bigint,
): Leases {
  const isHeld = (name: string, { holder, fence }: Lease): boolean => {
    const held = rows.get(name, clock.now())
    return held?.holder === holder && held.fence === fence
  }
  return {
    async acquire(name, holder, leaseMs) {
      const now = clock.now()
      const held = rows.get(name, now)
      if (held !== undefined && held.holder !== holder) return undefined
      const lease = held ?? { holder, fence: nextFence() }
      rows.set(name, lease, now + leaseMs)
      return lease
    },
    async renew(name, lease, leaseMs) {
      if (!isHeld(name, lease)) return false
      rows.set(name, lease, clock.now() + leaseMs)
      return true
    },
    async release(name, lease) {
      if (isHeld(name, lease)) rows.remove(name)
    },
  }
}
