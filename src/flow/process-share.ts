import type { Clock } from '../model/clock.ts'
import type { Buckets } from '../store/buckets.ts'
import type { Lease, Leases } from '../store/leases.ts'
import type { SwappedStates } from '../store/swapped-states.ts'
import { type BucketLevel, bucketTaken } from './rate-limit.ts'

/** What all workers share, here by those of one process alone (`scope: 'process'`). */
export interface Share {
  readonly states: SwappedStates
  readonly leases: Leases
  readonly buckets: Buckets
}

export function processShare(clock: Clock): Share {
  const values = new Map<string, { readonly value: string; readonly version: bigint }>()
  const holders = new Map<string, Lease & { readonly endsAt: number }>()
  const isTheirs = (name: string, { holder, fence }: Lease): boolean => {
    const found = holders.get(name)
    return found?.holder === holder && found.fence === fence && found.endsAt > clock.now()
  }
  return {
    buckets: processBuckets(clock),
    states: {
      read: async (name) => values.get(name),
      swap: async (name, version, value) => {
        if (values.get(name)?.version !== version) return undefined
        const next = (version ?? 0n) + 1n
        values.set(name, { value, version: next })
        return next
      },
    },
    leases: {
      acquire: async (name, holder, leaseMs) => {
        const found = holders.get(name)
        const isHeld = found !== undefined && found.endsAt > clock.now()
        if (isHeld && found.holder !== holder) return undefined
        const fence = isHeld ? found.fence : (found?.fence ?? 0n) + 1n
        holders.set(name, { holder, fence, endsAt: clock.now() + leaseMs })
        return { holder, fence }
      },
      renew: async (name, lease, leaseMs) => {
        if (!isTheirs(name, lease)) return false
        holders.set(name, { ...lease, endsAt: clock.now() + leaseMs })
        return true
      },
      release: async (name, lease) => {
        if (isTheirs(name, lease)) holders.set(name, { ...lease, endsAt: 0 })
      },
    },
  }
}

/** Names in use at a time; one that nobody uses is full again in its time, and so is one that was forgotten. */
const BUCKETS_MAX = 10_000

export function processBuckets(clock: Clock): Buckets {
  const levels = new Map<string, BucketLevel>()
  return {
    take: async (name, rate, tokens) => {
      const { after, answer } = bucketTaken(levels.get(name), rate, tokens, clock.now())
      levels.delete(name)
      levels.set(name, after)
      const [oldest] = levels.keys()
      if (levels.size > BUCKETS_MAX && oldest !== undefined) levels.delete(oldest)
      return answer
    },
  }
}
