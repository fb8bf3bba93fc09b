import type { Clock } from '../model/clock.ts'
import { messageOfError } from '../model/describe-error.ts'
import type { Logger } from '../model/logger.ts'
import type { Buckets } from '../store/buckets.ts'
import { isRefusedCall } from '../store/refused-call.ts'
import { nameGiver } from './name-giver.ts'
import type { RateLimit } from './rate-limit.ts'
import { refusedByStore } from './refused-by-store.ts'
import { forgetOldest, keptTurns } from './turns.ts'

/** The rates of one queue: of all its messages, and of those of one key. */
export interface RateLimiter {
  /** Undefined: it may run. A number: it waits so long, in ms, given back without blame. Rejects with a PermanentError for a payload without a key, or with one that the store refuses. */
  ask(payload: unknown): Promise<number | undefined>
}

export interface RateLimiterOptions {
  readonly queue: string
  readonly all: RateLimit | undefined
  readonly perKey: (RateLimit & { key(payload: unknown): string }) | undefined
  readonly buckets: Buckets
  readonly clock: Clock
  readonly logger: Logger
}

/** Nobody can count: a rate that is passed is worse than a message that is late. */
const AWAY_MS = 1_000

export function rateLimiter(options: RateLimiterOptions): RateLimiter {
  const { queue, all, perKey, clock, logger } = options
  const turns = keptTurns(clock)
  /** Taken, but then the queue's own rate said no: the key's next message has it. */
  const spare = new Set<string>()
  const keyOf = perKey && nameGiver({ queue, what: 'rateLimit.perKey.key' }, perKey.key)
  let failing = false

  const take = async (name: string, limit: RateLimit): Promise<number | undefined> => {
    const rate = { capacity: limit.burst, refillPerSecond: limit.perSecond }
    try {
      const { taken, retryAfterMs } = await options.buckets.take(name, rate, 1)
      failing = false
      if (taken) return undefined
      return turns.next(name, retryAfterMs ?? AWAY_MS, limit.perSecond)
    } catch (error) {
      if (isRefusedCall(error)) throw refusedByStore(queue, 'token (rateLimit)', error)
      const what = `its rate cannot be counted (${messageOfError(error)}); its messages wait`
      if (!failing) logger.warn(`queue "${queue}": ${what}`, { queue })
      failing = true
      return AWAY_MS
    }
  }

  return {
    ask: async (payload) => {
      const key = keyOf?.(payload)
      const name = `flow:rate:${queue}:${key ?? ''}`
      const isLimited = perKey !== undefined && key !== undefined
      if (isLimited && !spare.delete(name)) {
        const waitMs = await take(name, perKey)
        if (waitMs !== undefined) return waitMs
      }
      const waitMs = all && (await take(`flow:rate:${queue}`, all))
      if (waitMs !== undefined && isLimited) {
        spare.add(name)
        forgetOldest(spare)
      }
      return waitMs
    },
  }
}
