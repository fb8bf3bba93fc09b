import type { Leases } from '../../store/leases.ts'
import { type Database, wholeMs } from './database.ts'

export function redisLeases({ run, key }: Database): Leases {
  const keysOf = (name: string): readonly string[] => [key(name, 'lease'), key(name, 'fence')]
  return {
    async acquire(name, holder, leaseMs) {
      const fence = await run('ACQUIRE_LEASE', keysOf(name), [holder, wholeMs(leaseMs)])
      return fence === null ? undefined : { holder, fence: BigInt(String(fence)) }
    },
    async renew(name, { holder, fence }, leaseMs) {
      const args = [holder, String(fence), wholeMs(leaseMs)]
      return Number(await run('RENEW_LEASE', keysOf(name), args)) === 1
    },
    async release(name, { holder, fence }) {
      await run('RELEASE_LEASE', keysOf(name), [holder, String(fence)])
    },
  }
}
