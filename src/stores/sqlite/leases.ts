import type { SqliteHandle } from '../../sql/executor.ts'
import { asNumber, asRow, prepared } from '../../sql/sqlite-handle.ts'
import type { Lease, Leases } from '../../store/leases.ts'
import type { Database } from './database.ts'
import { FIND_LEASE, HOLD_LEASE, NEXT_FENCE, RELEASE_LEASE, RENEW_LEASE } from './statements.ts'

export function sqliteLeases({ handle, now, write }: Database): Leases {
  const find = (name: string, at: number): Lease | undefined => {
    const found = prepared(handle, FIND_LEASE).get(name, at)
    if (found === undefined) return undefined
    const { holder, fence } = asRow(found)
    return { holder: String(holder), fence: BigInt(asNumber(fence)) }
  }
  return {
    acquire: (name, holder, leaseMs) =>
      write(() => {
        const at = now()
        const held = find(name, at)
        if (held !== undefined && held.holder !== holder) return undefined
        const lease = held ?? { holder, fence: nextFence(handle) }
        prepared(handle, HOLD_LEASE).run(name, holder, Number(lease.fence), at + leaseMs)
        return lease
      }),
    renew: (name, { holder, fence }, leaseMs) =>
      write(() => {
        const at = now()
        const renewal = [at + leaseMs, name, holder, Number(fence), at]
        return Number(prepared(handle, RENEW_LEASE).run(...renewal).changes) > 0
      }),
    release: (name, { holder, fence }) =>
      write(() => {
        prepared(handle, RELEASE_LEASE).run(name, holder, Number(fence))
      }),
  }
}

/** For all names together, so that a row may go and the fences of its name still grow. */
export function nextFence(handle: SqliteHandle): bigint {
  return BigInt(asNumber(asRow(prepared(handle, NEXT_FENCE).get()).value))
}
