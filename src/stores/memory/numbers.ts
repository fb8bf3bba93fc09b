import type { Clock } from '../../model/clock.ts'
import type { Buckets } from '../../store/buckets.ts'
import type { Counters } from '../../store/counters.ts'
import { type BucketLevel, takeTokens } from '../bucket-level.ts'
import { exactly } from '../exactly.ts'
import type { EndingRows } from './ending-rows.ts'

export function memoryBuckets(rows: EndingRows<BucketLevel>, clock: Clock): Buckets {
  return {
    async take(name, rate, tokens) {
      const now = clock.now()
      const { answer, level } = takeTokens(rows.get(name, now), rate, tokens, now)
      if (level !== undefined) rows.set(name, level, level.fullAt)
      return answer
    },
  }
}

export function memoryCounters(rows: EndingRows<number>, clock: Clock): Counters {
  return {
    async add(name, delta, keepMs) {
      const now = clock.now()
      const before = rows.get(name, now)
      const sum = exactly((before ?? 0) + delta)
      if (before === undefined) rows.set(name, sum, now + keepMs)
      else rows.change(name, sum)
      return sum
    },
    read: async (name) => rows.get(name, clock.now()) ?? 0,
  }
}
