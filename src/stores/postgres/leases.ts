import type { Leases } from '../../store/leases.ts'
import type { Database } from './database.ts'

export function postgresLeases({ sql, query }: Database): Leases {
  return {
    async acquire(name, holder, leaseMs) {
      const [row] = await query(sql.ACQUIRE_LEASE, [name, holder, leaseMs])
      return row && { holder, fence: BigInt(String(row.fence)) }
    },
    async renew(name, { holder, fence }, leaseMs) {
      const rows = await query(sql.RENEW_LEASE, [name, holder, String(fence), leaseMs])
      return rows.length > 0
    },
    async release(name, { holder, fence }) {
      await query(sql.RELEASE_LEASE, [name, holder, String(fence)])
    },
  }
}
