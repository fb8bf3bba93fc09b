import { keepsAll } from '../../transport/keeps-all.ts'
import type { Traits } from '../../transport/traits.ts'
import { LEVELS } from './keys.ts'

/** A script takes at most this many messages: Lua hands on no more than some 8,000 values at once. */
export const SETTLE_STEP = 1_000

/** @param durable whether every write is on disk before it is confirmed */
export function redisTraits(durable: boolean): Traits {
  return {
    ...keepsAll,
    order: 'perKey',
    priorities: LEVELS,
    fairness: true,
    capacity: 'exact',
    clock: 'server',
    durability: durable ? 'disk' : 'process',
  }
}
