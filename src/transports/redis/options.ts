import { problems, show } from '../../model/problems.ts'
import { ADDRESS_KEYS, checkAddress, checkPrefix, type RedisAddress } from '../../redis/address.ts'

export type RedisOptions = RedisSettings & RedisAddress

export interface RedisSettings {
  /** Begins every key of ours; 1 to 64 letters, digits, `_`, `.`, `:` or `-`. Default `millrace`. */
  readonly prefix?: string
  /** The consumer group that all workers share, as long as `prefix`. Default `millrace`. */
  readonly group?: string
  /** Whether one more connection listens for new messages (SUBSCRIBE). Default true. */
  readonly listen?: boolean
  /** How often a receive that waits looks for work, in ms; 10 to 60,000. Default 1,000 when listening, else 250. */
  readonly pollMs?: number
  /** How long a call may take, connecting included, in ms; 100 to 600,000. Default 10,000. */
  readonly timeoutMs?: number
}

export interface Resolved {
  readonly address: RedisAddress
  readonly prefix: string
  readonly group: string
  readonly listen: boolean
  readonly pollMs: number | undefined
  readonly timeoutMs: number
}

const SETTINGS = ['prefix', 'group', 'listen', 'pollMs', 'timeoutMs']
const POLL = { min: 10, max: 60_000, default: 250 } as const
const TIMEOUT = { min: 100, max: 600_000, default: 10_000 } as const

/** @throws MILLRACE_INVALID_OPTIONS with all that is wrong */
export function resolveOptions(options: RedisOptions): Resolved {
  const found = problems('redis')
  found.knownKeys(options, [...ADDRESS_KEYS, ...SETTINGS])
  checkAddress(found, options)
  const { prefix = 'millrace', group = 'millrace', listen = true, pollMs } = options
  checkPrefix(found, 'prefix', prefix)
  checkPrefix(found, 'group', group)
  if (typeof listen !== 'boolean') found.add(`listen: expected true or false, got ${show(listen)}`)
  found.number('pollMs', pollMs, { ...POLL, integer: false })
  const timeoutMs = found.number('timeoutMs', options.timeoutMs, { ...TIMEOUT, integer: false })
  found.throwIfAny()
  return { address: options, prefix, group, listen, pollMs, timeoutMs }
}
