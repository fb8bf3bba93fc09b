import type { Clock } from '../model/clock.ts'
import type { Buckets } from '../store/buckets.ts'
import type { Lease, Leases } from '../store/leases.ts'
import type { SwappedStates } from '../store/swapped-states.ts'

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
const BUCKETS_MAX = 1_000

function processBuckets(clock: Clock): Buckets {
  const levels = new Map<string, { readonly level: number; readonly at: number }>()
  return {
    take: async (name, { capacity, refillPerSecond }, tokens) => {
      const now = clock.now()
      const found = levels.get(name)
      const refilled = found && found.level + ((now - found.at) * refillPerSecond) / 1_000
      const level = Math.min(capacity, refilled ?? capacity)
      const taken = level >= tokens
      levels.delete(name)
      levels.set(name, { level: taken ? level - tokens : level, at: now })
      const [oldest] = levels.keys()
      if (levels.size > BUCKETS_MAX && oldest !== undefined) levels.delete(oldest)
      const missingMs = ((tokens - level) * 1_000) / refillPerSecond
      return { taken, retryAfterMs: taken ? 0 : tokens > capacity ? undefined : missingMs }
    },
  }
}
