import { read } from '../../model/probe.ts'
import { type Problems, problems, show } from '../../model/problems.ts'
import { anyClient, type RedisClientLike } from './client-shapes.ts'

export type RedisOptions = RedisSettings & RedisAddress

/** Where Redis is: an address, sentinels, the nodes of a cluster, or a client of `redis` or `@redis/client`. */
export type RedisAddress =
  | {
      readonly url: string
      readonly client?: never
      readonly sentinels?: never
      readonly cluster?: never
    }
  | {
      readonly client: RedisClientLike
      readonly url?: never
      readonly sentinels?: never
      readonly cluster?: never
    }
  | {
      readonly sentinels: Sentinels
      readonly url?: never
      readonly client?: never
      readonly cluster?: never
    }
  | {
      readonly cluster: readonly string[]
      readonly url?: never
      readonly client?: never
      readonly sentinels?: never
    }

export interface Sentinels {
  /** How the sentinels name the primary: `mymaster`. */
  readonly name: string
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
  /** For the servers, not for the sentinels. */
  readonly username?: string
  readonly password?: string
  readonly tls?: boolean
}

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

const ADDRESSES = ['url', 'client', 'sentinels', 'cluster'] as const
const SETTINGS = ['prefix', 'group', 'listen', 'pollMs', 'timeoutMs']
const SENTINEL_KEYS = ['name', 'nodes', 'username', 'password', 'tls']
const POLL = { min: 10, max: 60_000, default: 250 } as const
const TIMEOUT = { min: 100, max: 600_000, default: 10_000 } as const

/** @throws MILLRACE_INVALID_OPTIONS with all that is wrong */
export function resolveOptions(options: RedisOptions): Resolved {
  const found = problems('redis')
  found.knownKeys(options, [...ADDRESSES, ...SETTINGS])
  checkAddress(found, options)
  const { prefix = 'millrace', group = 'millrace', listen = true, pollMs } = options
  for (const [name, value] of Object.entries({ prefix, group })) {
    if (typeof value === 'string' && /^[\w.:-]{1,64}$/.test(value)) continue
    found.add(`${name}: expected 1 to 64 letters, digits, _ . : or -, got ${show(value)}`)
  }
  if (typeof listen !== 'boolean') found.add(`listen: expected true or false, got ${show(listen)}`)
  found.number('pollMs', pollMs, { ...POLL, integer: false })
  const timeoutMs = found.number('timeoutMs', options.timeoutMs, { ...TIMEOUT, integer: false })
  found.throwIfAny()
  return { address: options, prefix, group, listen, pollMs, timeoutMs }
}

/** An address is never shown: it may hold a password. */
function checkAddress(found: Problems, options: RedisOptions): void {
  const { url, client, sentinels, cluster } = options
  const choice = choiceProblem(options)
  if (choice !== undefined) {
    found.add(choice)
    return
  }
  const urls: readonly (readonly [string, unknown])[] = Array.isArray(cluster)
    ? cluster.map((node, at) => [`cluster[${at}]`, node] as const)
    : url === undefined
      ? []
      : [['url', url]]
  for (const [name, value] of urls) {
    const problem = urlProblem(value)
    if (problem !== undefined) found.add(`${name}${problem}`)
  }
  if (cluster !== undefined && !(Array.isArray(cluster) && cluster.length > 0)) {
    found.add(`cluster: expected the addresses of some nodes, got ${show(cluster)}`)
  }
  if (client !== undefined && anyClient(client) === undefined) {
    const expected = 'client: expected a client of redis or @redis/client, version 5 or newer'
    found.add(`${expected}, got ${show(client)}`)
  }
  if (sentinels !== undefined) checkSentinels(found, sentinels)
}

function choiceProblem(options: RedisOptions): string | undefined {
  const present = ADDRESSES.filter((name) => options[name] !== undefined)
  if (present.length === 1) return undefined
  const expected = `expected one of ${ADDRESSES.join(', ')}`
  if (present.length > 1) return `${expected}, got ${present.join(' and ')}`
  const unset = ADDRESSES.filter((name) => name in options)
  if (unset.length === 0) return `${expected}, got none`
  return `${expected}, got ${unset.join(': undefined, ')}: undefined; is the environment variable set?`
}

function urlProblem(url: unknown): string | undefined {
  const expected = ': expected an address such as redis://host:6379 or rediss://host:6379'
  if (typeof url !== 'string') return `${expected}, got ${show(url)}`
  if (url === '') return `${expected}, got an empty text; is the environment variable set?`
  if (!/^rediss?:\/\//.test(url)) return `${expected}, got a text without redis://`
  return URL.canParse(url)
    ? undefined
    : ' cannot be read as an address; characters such as # / ? @ in user and password must be percent-encoded'
}

function checkSentinels(found: Problems, sentinels: unknown): void {
  found.knownKeys(sentinels, SENTINEL_KEYS, 'sentinels')
  const name = read(sentinels, 'name')
  if (typeof name !== 'string' || name === '') {
    found.add(`sentinels.name: expected how the sentinels name the primary, got ${show(name)}`)
  }
  const nodes = read(sentinels, 'nodes')
  const good = Array.isArray(nodes) && nodes.length > 0 && nodes.every(isNode)
  if (!good) found.add(`sentinels.nodes: expected a list of { host, port }, got ${show(nodes)}`)
}

function isNode(node: unknown): boolean {
  return typeof read(node, 'host') === 'string' && Number.isInteger(read(node, 'port'))
}
