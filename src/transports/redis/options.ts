import { isObject, read } from '../../model/probe.ts'
import { type Problems, problems, show } from '../../model/problems.ts'
import { ADDRESS_KEYS, checkAddress, checkPrefix, type RedisAddress } from '../../redis/address.ts'
import { type Naming, type RedisNames, streamProblem } from './names.ts'

export type RedisOptions = RedisSettings & RedisAddress

export interface RedisSettings {
  /** Begins every key of ours; 1 to 64 letters, digits, `_`, `.`, `:` or `-`. Default `millrace`. */
  readonly prefix?: string
  /** The consumer group that all workers share, as long as `prefix`. Default `millrace`. */
  readonly group?: string
  /** Where a queue is in Redis, by its name here: a stream and a group that other programs made. */
  readonly queues?: Readonly<Record<string, RedisNames>>
  /**
   * `create` makes the stream and the group that are missing, the group at the beginning of the stream; `check` makes neither.
   * Both refuse what would lose messages or leave them lying, and list it all; what is there is never changed. `none` looks at
   * nothing. Default `create`.
   */
  readonly topology?: TopologyMode
  /** Whether one more connection listens for new messages (SUBSCRIBE). Default true. */
  readonly listen?: boolean
  /** How often a receive that waits looks for work, in ms; 10 to 60,000. Default 1,000 when listening, else 250. */
  readonly pollMs?: number
  /** How long a call may take, connecting included, in ms; 100 to 600,000. Default 10,000. */
  readonly timeoutMs?: number
}

export interface Resolved {
  readonly address: RedisAddress
  readonly naming: Naming
  readonly topology: TopologyMode
  readonly listen: boolean
  readonly pollMs: number | undefined
  readonly timeoutMs: number
}

export type TopologyMode = 'create' | 'check' | 'none'

const TOPOLOGIES: readonly unknown[] = ['create', 'check', 'none']
const SETTINGS = ['prefix', 'group', 'queues', 'topology', 'listen', 'pollMs', 'timeoutMs']
const POLL = { min: 10, max: 60_000, default: 250 } as const
const TIMEOUT = { min: 100, max: 600_000, default: 10_000 } as const

/** @throws MILLRACE_INVALID_OPTIONS with all that is wrong */
export function resolveOptions(options: RedisOptions): Resolved {
  const found = problems('redis')
  found.knownKeys(options, [...ADDRESS_KEYS, ...SETTINGS])
  checkAddress(found, options)
  const { prefix = 'millrace', group = 'millrace', listen = true, pollMs } = options
  const { queues = {}, topology = 'create' } = options
  checkPrefix(found, 'prefix', prefix)
  checkPrefix(found, 'group', group)
  checkQueues(found, queues)
  if (!TOPOLOGIES.includes(topology)) {
    found.add(`topology: expected "create", "check" or "none", got ${show(topology)}`)
  }
  if (typeof listen !== 'boolean') found.add(`listen: expected true or false, got ${show(listen)}`)
  found.number('pollMs', pollMs, { ...POLL, integer: false })
  const timeoutMs = found.number('timeoutMs', options.timeoutMs, { ...TIMEOUT, integer: false })
  found.throwIfAny()
  const naming = { prefix, group, queues }
  return { address: options, naming, topology, listen, pollMs, timeoutMs }
}

const NAME_MAX_BYTES = 512

function checkQueues(found: Problems, queues: unknown): void {
  if (!isObject(queues)) {
    found.add(`queues: expected { [queue]: { stream, group } }, got ${show(queues)}`)
    return
  }
  for (const [queue, names] of Object.entries(queues)) {
    const within = `queues[${JSON.stringify(queue)}]`
    found.knownKeys(names, ['stream', 'group'], within)
    for (const key of ['stream', 'group']) {
      const value = read(names, key)
      if (value === undefined) continue
      if (!isName(value)) {
        found.add(
          `${within}.${key}: expected a text of 1 to ${NAME_MAX_BYTES} bytes, got ${show(value)}`,
        )
      } else if (key === 'stream' && streamProblem(value) !== undefined) {
        found.add(`${within}.stream: ${show(value)} ${streamProblem(value)}`)
      }
    }
  }
}

function isName(value: unknown): value is string {
  if (typeof value !== 'string' || !value.isWellFormed()) return false
  return value !== '' && Buffer.byteLength(value) <= NAME_MAX_BYTES
}
