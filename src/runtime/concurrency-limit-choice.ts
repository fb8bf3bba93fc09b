import { read } from '../model/probe.ts'
import { type Problems, show } from '../model/problems.ts'

/** How many messages may run side by side. */
export interface ConcurrencyLimitOptions<Payload> {
  /** Of all messages of the queue, 1 to 100,000. Default: no limit but the `concurrency` of each worker. */
  readonly max?: number
  /** Of the messages of one key each. */
  readonly perKey?: {
    /** 1 to 255 characters, without NUL and lone surrogates: a tenant, an account. */
    readonly key: (payload: Payload) => string
    /** 1 to 100,000. */
    readonly max: number
  }
  /** Who counts together: all workers of the store, or each process for itself. Default `store`. */
  readonly scope?: 'store' | 'process'
}

/** With every default filled in. */
export interface ConcurrencyLimitChoice<Payload> {
  readonly max: number | undefined
  readonly perKey: PerKey<Payload> | undefined
  readonly scope: 'store' | 'process'
}

interface PerKey<Payload> {
  readonly max: number
  /** A method, so that any queue is an `AnyQueue`. */
  key(payload: Payload): string
}

const RULE = { min: 1, max: 100_000 } as const

export function resolveConcurrencyLimit<Payload>(
  options: ConcurrencyLimitOptions<Payload> | undefined,
  found: Problems,
): ConcurrencyLimitChoice<Payload> | undefined {
  if (options === undefined) return undefined
  if (typeof options !== 'object' || options === null) {
    found.add(
      `concurrencyLimit: expected { max, perKey, scope }, got ${show(options)}; how many run in one process is work(queue, handler, { concurrency })`,
    )
    return undefined
  }
  found.knownKeys(options, ['max', 'perKey', 'scope'], 'concurrencyLimit')
  const scope: unknown = read(options, 'scope') ?? 'store'
  if (scope !== 'store' && scope !== 'process') {
    found.add(`concurrencyLimit.scope: expected "store" or "process", got ${show(scope)}`)
  }
  const { max, perKey } = options
  if (max === undefined && perKey === undefined) {
    found.add('concurrencyLimit: expected max, perKey or both')
  }
  return {
    max: max === undefined ? undefined : found.number('concurrencyLimit.max', max, RULE),
    perKey: perKey === undefined ? undefined : perKeyOf(perKey, found),
    scope: scope === 'process' ? 'process' : 'store',
  }
}

function perKeyOf<Payload>(
  perKey: NonNullable<ConcurrencyLimitOptions<Payload>['perKey']>,
  found: Problems,
): PerKey<Payload> | undefined {
  found.knownKeys(perKey, ['key', 'max'], 'concurrencyLimit.perKey')
  if (typeof perKey !== 'object' || perKey === null) return undefined
  const key: unknown = read(perKey, 'key')
  if (typeof key !== 'function') {
    found.add(`concurrencyLimit.perKey.key: expected a function of the payload, got ${show(key)}`)
  }
  const max = found.number('concurrencyLimit.perKey.max', read(perKey, 'max'), RULE)
  return { max, key: perKey.key }
}
