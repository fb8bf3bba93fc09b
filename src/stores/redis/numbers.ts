import type { Buckets } from '../../store/buckets.ts'
import type { Counters } from '../../store/counters.ts'
import { type Database, wholeMs } from './database.ts'

export function redisBuckets({ run, key }: Database): Buckets {
  return {
    async take(name, { capacity, refillPerSecond }, tokens) {
      const args = [capacity, refillPerSecond / 1_000, tokens].map(String)
      const retryAfterMs = Number(await run('TAKE_TOKENS', [key(name, 'bucket')], args))
      return { taken: retryAfterMs === 0, retryAfterMs }
    },
  }
}

export function redisCounters({ run, key }: Database): Counters {
  const keyOf = (name: string): readonly string[] => [key(name, 'counter')]
  return {
    add: async (name, delta, keepMs) =>
      Number(await run('ADD_TO_COUNTER', keyOf(name), [String(delta), wholeMs(keepMs)])),
    read: async (name) => Number(await run('READ_COUNTER', keyOf(name), [])),
  }
}
