import type { HeldSlot, SlotLimits, Slots } from '../store/slots.ts'
import { checkBatch, checkIds, checkMax, checkMs, checkName, refused } from './bounds.ts'
import type { Open } from './guarded-store.ts'

/** A count of more is a number, and no limit. */
const SLOTS_MAX = 1_000_000

export function guardedSlots(slots: Slots, open: Open): Slots {
  return {
    async acquire(pool, limits, batch, leaseMs) {
      open()
      checkName('pool', pool)
      checkLimits(limits)
      checkMs('leaseMs', leaseMs)
      checkBatch(batch)
      for (const { holder, key } of batch) {
        checkName('holder', holder)
        if (key !== undefined) checkIds('key', [key])
      }
      return batch.length === 0 ? [] : await slots.acquire(pool, limits, batch, leaseMs)
    },
    async renew(pool, held, leaseMs) {
      open()
      checkHeld(pool, held)
      checkMs('leaseMs', leaseMs)
      return held.length === 0 ? [] : await slots.renew(pool, held, leaseMs)
    },
    async release(pool, held) {
      open()
      checkHeld(pool, held)
      if (held.length > 0) await slots.release(pool, held)
    },
    async count(pool, keysMax) {
      open()
      checkName('pool', pool)
      checkMax('keysMax', keysMax)
      return await slots.count(pool, keysMax)
    },
  }
}

function checkLimits({ max, maxPerKey }: SlotLimits): void {
  for (const [what, value] of Object.entries({ max, maxPerKey })) {
    const fits =
      value === undefined || (Number.isInteger(value) && value >= 1 && value <= SLOTS_MAX)
    if (!fits) throw refused(what, `expected a whole number from 1 to ${SLOTS_MAX}`, value)
  }
}

function checkHeld(pool: string, held: readonly HeldSlot[]): void {
  checkName('pool', pool)
  checkBatch(held)
  for (const { holder } of held) checkName('holder', holder)
}
