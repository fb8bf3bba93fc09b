import type { RateLimit } from '../flow/rate-limit.ts'
import { read } from '../model/probe.ts'
import { type Problems, show } from '../model/problems.ts'

/** How many messages per second may run. */
export interface RateLimitOptions<Payload> {
  /** Of all messages of the queue, 0.001 to 1,000,000. Default: no limit. */
  readonly perSecond?: number
  /** At once, after a quiet time; 1 to 1,000,000, and no more than ten years of the rate. Default: those of one second, at least 1. */
  readonly burst?: number
  /** Of the messages of one key each. */
  readonly perKey?: {
    /** 1 to 255 characters, without NUL and lone surrogates: a tenant, an account. */
    readonly key: (payload: Payload) => string
    readonly perSecond: number
    readonly burst?: number
  }
  /** Who shares it: all workers of the store, or each process for itself. Default `store`. */
  readonly scope?: 'store' | 'process'
}

/** With every default filled in. */
export interface RateLimitChoice<Payload> {
  readonly all: RateLimit | undefined
  readonly perKey: PerKey<Payload> | undefined
  readonly scope: 'store' | 'process'
}

interface PerKey<Payload> extends RateLimit {
  /** A method, so that any queue is an `AnyQueue`. */
  key(payload: Payload): string
}

const MOST = 1_000_000
/** Ten years: stores keep no bucket that takes longer to fill, and would refuse it for each message. */
const FILL_MAX_S = 315_619_200

export function resolveRateLimit<Payload>(
  options: RateLimitOptions<Payload> | undefined,
  found: Problems,
): RateLimitChoice<Payload> | undefined {
  if (options === undefined) return undefined
  found.knownKeys(options, ['perSecond', 'burst', 'perKey', 'scope'], 'rateLimit')
  if (typeof options !== 'object' || options === null) return undefined
  const scope: unknown = read(options, 'scope') ?? 'store'
  if (scope !== 'store' && scope !== 'process') {
    found.add(`rateLimit.scope: expected "store" or "process", got ${show(scope)}`)
  }
  const { perKey } = options
  if (options.perSecond === undefined && perKey === undefined) {
    found.add('rateLimit: expected perSecond, perKey or both')
  }
  return {
    all: options.perSecond === undefined ? undefined : limitOf('rateLimit', options, found),
    perKey: perKey === undefined ? undefined : perKeyOf(perKey, found),
    scope: scope === 'process' ? 'process' : 'store',
  }
}

function perKeyOf<Payload>(
  perKey: NonNullable<RateLimitOptions<Payload>['perKey']>,
  found: Problems,
): PerKey<Payload> | undefined {
  found.knownKeys(perKey, ['key', 'perSecond', 'burst'], 'rateLimit.perKey')
  if (typeof perKey !== 'object' || perKey === null) return undefined
  const key: unknown = read(perKey, 'key')
  if (typeof key !== 'function') {
    found.add(`rateLimit.perKey.key: expected a function of the payload, got ${show(key)}`)
  }
  return { ...limitOf('rateLimit.perKey', perKey, found), key: perKey.key }
}

function limitOf(name: string, given: unknown, found: Problems): RateLimit {
  const rule = { min: 0.001, max: MOST, integer: false }
  const perSecond = found.number(`${name}.perSecond`, read(given, 'perSecond'), rule)
  const burst = found.number(`${name}.burst`, read(given, 'burst'), {
    min: 1,
    max: Math.min(MOST, Math.floor(FILL_MAX_S * perSecond)),
    default: Math.max(1, perSecond),
    integer: false,
  })
  return { perSecond, burst }
}
