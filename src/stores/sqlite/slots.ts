import { asNumber, asRow, prepared } from '../../sql/sqlite-handle.ts'
import type { SlotAnswer, SlotLimits, SlotRequest, Slots } from '../../store/slots.ts'
import type { Database } from './database.ts'
import { nextFence } from './leases.ts'
import {
  ADD_SLOT,
  COUNT_SLOTS,
  COUNT_SLOTS_OF_KEY,
  COUNT_SLOTS_OF_KEYS,
  END_SLOTS,
  EXTEND_SLOT,
  FIND_SLOT,
  RELEASE_SLOT,
  RENEW_SLOT,
} from './statements.ts'

export function sqliteSlots({ handle, now, read, write }: Database): Slots {
  const countOf = (pool: string, at: number): number =>
    asNumber(asRow(prepared(handle, COUNT_SLOTS).get(pool, at)).n)
  const countOfKey = (pool: string, key: string): number =>
    asNumber(asRow(prepared(handle, COUNT_SLOTS_OF_KEY).get(pool, key)).n)
  const fenceOf = (pool: string, holder: string): bigint | undefined => {
    const found = prepared(handle, FIND_SLOT).get(pool, holder)
    return found === undefined ? undefined : BigInt(asNumber(asRow(found).fence))
  }
  /** Of a pool from which those that have ended are gone. */
  const giver = (pool: string, { max, maxPerKey }: SlotLimits, at: number, endsAt: number) => {
    let held = countOf(pool, at)
    return ({ holder, key }: SlotRequest): SlotAnswer => {
      const before = fenceOf(pool, holder)
      if (before !== undefined) {
        prepared(handle, EXTEND_SLOT).run(endsAt, pool, holder)
        return { as: 'held', fence: before }
      }
      const limited = key !== undefined && maxPerKey !== undefined
      if (limited && countOfKey(pool, key) >= maxPerKey) return { as: 'full', of: 'key' }
      if (max !== undefined && held >= max) return { as: 'full', of: 'pool' }
      held += 1
      const fence = nextFence(handle)
      prepared(handle, ADD_SLOT).run(pool, holder, key ?? null, Number(fence), endsAt)
      return { as: 'held', fence }
    }
  }
  return {
    acquire: (pool, limits, batch, leaseMs) =>
      write(() => {
        const at = now()
        prepared(handle, END_SLOTS).run(pool, at)
        return batch.map(giver(pool, limits, at, at + leaseMs))
      }),
    renew: (pool, slots, leaseMs) =>
      write(() => {
        const at = now()
        return slots.map(({ holder, fence }) => {
          const renewal = [at + leaseMs, pool, holder, Number(fence), at]
          return Number(prepared(handle, RENEW_SLOT).run(...renewal).changes) > 0
        })
      }),
    release: (pool, slots) =>
      write(() => {
        for (const { holder, fence } of slots) {
          prepared(handle, RELEASE_SLOT).run(pool, holder, Number(fence))
        }
      }),
    count: (pool, keysMax) =>
      read(() => {
        const at = now()
        const rows = prepared(handle, COUNT_SLOTS_OF_KEYS).all(pool, at, keysMax).map(asRow)
        return {
          held: countOf(pool, at),
          keys: rows.map(({ key, n }) => ({ key: String(key), held: asNumber(n) })),
        }
      }),
  }
}
