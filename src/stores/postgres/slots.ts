import type { Row } from '../../sql/executor.ts'
import { textArray } from '../../sql/pg-array.ts'
import type { HeldSlot, SlotAnswer, Slots } from '../../store/slots.ts'
import type { Database } from './database.ts'

export function postgresSlots({ sql, query }: Database): Slots {
  return {
    async acquire(pool, { max, maxPerKey }, batch, leaseMs) {
      const holders = textArray(batch.map(({ holder }) => holder))
      const keys = textArray(batch.map(({ key }) => key ?? null))
      const params = [pool, max ?? null, maxPerKey ?? null, holders, keys, leaseMs]
      return (await query(sql.ACQUIRE_SLOTS, params)).map(answerOf)
    },
    async renew(pool, slots, leaseMs) {
      const rows = await query(sql.RENEW_SLOTS, [pool, ...columns(slots), leaseMs])
      const renewed = new Set(rows.map(({ holder, fence }) => `${fence} ${holder}`))
      return slots.map(({ holder, fence }) => renewed.has(`${fence} ${holder}`))
    },
    async release(pool, slots) {
      await query(sql.RELEASE_SLOTS, [pool, ...columns(slots)])
    },
    async count(pool, keysMax) {
      const [all, ...keys] = await query(sql.COUNT_SLOTS, [pool, keysMax])
      return {
        held: Number(all?.n),
        keys: keys.map(({ key, n }) => ({ key: String(key), held: Number(n) })),
      }
    },
  }
}

function columns(slots: readonly HeldSlot[]): readonly string[] {
  return [
    textArray(slots.map(({ holder }) => holder)),
    textArray(slots.map(({ fence }) => String(fence))),
  ]
}

function answerOf({ fence, full_of: of }: Row): SlotAnswer {
  if (of === 'pool' || of === 'key') return { as: 'full', of }
  return { as: 'held', fence: BigInt(String(fence)) }
}
