import type { BucketRate, Buckets } from '../store/buckets.ts'
import type { Counters } from '../store/counters.ts'
import type { Leases } from '../store/leases.ts'
import type { SwappedStates } from '../store/swapped-states.ts'
import { checkMs, checkName, checkState, refused } from './bounds.ts'
import type { Open } from './guarded-store.ts'

export function guardedLeases(leases: Leases, open: Open): Leases {
  return {
    async acquire(name, holder, leaseMs) {
      open()
      checkName('lease', name)
      checkName('holder', holder)
      checkMs('leaseMs', leaseMs)
      return await leases.acquire(name, holder, leaseMs)
    },
    async renew(name, lease, leaseMs) {
      open()
      checkName('lease', name)
      checkMs('leaseMs', leaseMs)
      return await leases.renew(name, lease, leaseMs)
    },
    async release(name, lease) {
      open()
      checkName('lease', name)
      await leases.release(name, lease)
    },
  }
}

export function guardedBuckets(buckets: Buckets, open: Open): Buckets {
  return {
    async take(name, rate, tokens) {
      open()
      checkName('bucket', name)
      checkRate(rate)
      if (!(tokens >= 0)) throw refused('tokens', 'expected 0 or more', tokens)
      if (tokens > rate.capacity) return { taken: false, retryAfterMs: undefined }
      return await buckets.take(name, rate, tokens)
    },
  }
}

function checkRate({ capacity, refillPerSecond }: BucketRate): void {
  for (const [what, value] of Object.entries({ capacity, refillPerSecond })) {
    if (!(value > 0 && value <= RATE_MAX)) {
      throw refused(what, `expected more than 0, up to ${RATE_MAX}`, value)
    }
  }
  checkMs('time to fill the bucket', (capacity / refillPerSecond) * 1_000)
}

const RATE_MAX = 1_000_000_000

export function guardedCounters(counters: Counters, open: Open): Counters {
  return {
    async add(name, delta, keepMs) {
      open()
      checkName('counter', name)
      checkMs('keepMs', keepMs)
      if (!Number.isSafeInteger(delta)) throw refused('delta', 'expected a whole number', delta)
      return await counters.add(name, delta, keepMs)
    },
    async read(name) {
      open()
      checkName('counter', name)
      return await counters.read(name)
    },
  }
}

export function guardedStates(states: SwappedStates, open: Open): SwappedStates {
  return {
    async read(name) {
      open()
      checkName('state', name)
      return await states.read(name)
    },
    async swap(name, version, value) {
      open()
      checkName('state', name)
      checkState(value)
      return await states.swap(name, version, value)
    },
  }
}
