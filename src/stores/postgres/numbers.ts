import type { Buckets } from '../../store/buckets.ts'
import type { Counters } from '../../store/counters.ts'
import type { Database } from './database.ts'

export function postgresBuckets({ sql, query }: Database): Buckets {
  return {
    async take(name, { capacity, refillPerSecond }, tokens) {
      const params = [name, capacity, refillPerSecond / 1_000, tokens]
      const [row] = await query(sql.TAKE_TOKENS, params)
      const retryAfterMs = Number(row?.retry_ms)
      return { taken: retryAfterMs === 0, retryAfterMs }
    },
  }
}

export function postgresCounters({ sql, query }: Database): Counters {
  return {
    async add(name, delta, keepMs) {
      const [row] = await query(sql.ADD_TO_COUNTER, [name, delta, keepMs])
      return Number(row?.value)
    },
    async read(name) {
      const [row] = await query(sql.READ_COUNTER, [name])
      return Number(row?.value ?? 0)
    },
  }
}
