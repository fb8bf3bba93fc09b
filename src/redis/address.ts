import { isObject, read } from '../model/probe.ts'
import { type Problems, show } from '../model/problems.ts'
import { anyClient, type RedisClientLike } from './client-shapes.ts'

/** Where Redis is: an address, sentinels, the nodes of a cluster, or a client of `redis` or `@redis/client`. */
export type RedisAddress =
  | {
      readonly url: string
      /** Of Node's `tls.connect`: `ca`, `cert`, `key`, `servername`, …; with `rediss://`. */
      readonly tls?: object
      readonly client?: never
      readonly sentinels?: never
      readonly cluster?: never
    }
  | {
      readonly client: RedisClientLike
      readonly tls?: never
      readonly url?: never
      readonly sentinels?: never
      readonly cluster?: never
    }
  | {
      readonly sentinels: Sentinels
      /** As with `url`; for servers and sentinels alike. */
      readonly tls?: object
      readonly url?: never
      readonly client?: never
      readonly cluster?: never
    }
  | {
      readonly cluster: readonly string[]
      /** As with `url`, for all nodes. */
      readonly tls?: object
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
  /** Whether the servers speak TLS. */
  readonly tls?: boolean
  /** For the sentinels themselves, where they ask for it. */
  readonly sentinelUsername?: string
  readonly sentinelPassword?: string
  /** Whether the sentinels speak TLS. */
  readonly sentinelTls?: boolean
}

export const ADDRESSES = ['url', 'client', 'sentinels', 'cluster'] as const
/** Every option that says where Redis is and how it is reached. */
export const ADDRESS_KEYS: readonly string[] = [...ADDRESSES, 'tls']
const SENTINEL_KEYS = [
  ...['name', 'nodes', 'username', 'password', 'tls'],
  ...['sentinelUsername', 'sentinelPassword', 'sentinelTls'],
]
const PREFIX = /^[\w.:-]{1,64}$/

/** What begins every key of ours, and names like it. */
export function checkPrefix(found: Problems, name: string, value: unknown): void {
  if (typeof value === 'string' && PREFIX.test(value)) return
  found.add(`${name}: expected 1 to 64 letters, digits, _ . : or -, got ${show(value)}`)
}

/** Of options that hold more. */
export function addressOf({ url, client, sentinels, cluster, tls }: RedisAddress): RedisAddress {
  if (client !== undefined) return { client }
  const secured = tls === undefined ? {} : { tls }
  if (url !== undefined) return { url, ...secured }
  return sentinels === undefined
    ? { cluster: cluster ?? [], ...secured }
    : { sentinels, ...secured }
}

/** An address is never shown: it may hold a password. */
export function checkAddress(found: Problems, options: RedisAddress): void {
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
  checkTls(found, options)
}

/** Certificates for a connection in plain text would be left unused in silence. */
function checkTls(found: Problems, { tls, url, cluster, client, sentinels }: RedisAddress): void {
  if (tls === undefined) return
  if (!isObject(tls)) found.add(`tls: expected an object of options, got ${show(tls)}`)
  if (client !== undefined) found.add('tls: the client that was given has its own; leave it out')
  const isPlain = (one: unknown): boolean => typeof one === 'string' && one.startsWith('redis:')
  const plain = Array.isArray(cluster) ? cluster.some(isPlain) : isPlain(url)
  if (plain)
    found.add('tls: the address begins with redis://, which is plain text; write rediss://')
  if (sentinels !== undefined && sentinels.tls !== true && sentinels.sentinelTls !== true) {
    found.add('tls: neither sentinels.tls nor sentinels.sentinelTls is true')
  }
}

function choiceProblem(options: RedisAddress): string | undefined {
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
