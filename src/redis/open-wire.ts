import type { Clock } from '../model/clock.ts'
import { MillraceError } from '../model/errors.ts'
import { redact } from '../model/redact.ts'
import type { RedisAddress, Sentinels } from './address.ts'
import { anyClient } from './client-shapes.ts'
import { RedisConnectionError, wordOf } from './fault.ts'
import type { Wire } from './wire.ts'
import { manyWire } from './wire-many.ts'
import { singleWire } from './wire-single.ts'

const RECONNECT_MAX_MS = 2_000
/** RESP2 is what every version speaks, and all that scripts answer. */
const RESP = 2

/**
 * The client limits by itself how long a command waits to be written (5 s), with an AbortSignal.timeout for each, which costs 12 µs.
 * Ours bounds the whole call, and gives the connection up, see `call`.
 */
const NO_LIMIT = { timeout: 0 }

interface Place {
  readonly address: RedisAddress
  readonly timeoutMs: number
}

/** @throws MILLRACE_MISSING_CLIENT without @redis/client; RedisConnectionError when nobody answers */
export async function openWire(
  { address, timeoutMs }: Place,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Wire> {
  if (address.client !== undefined) return givenWire(address.client)
  const redis = await loadRedis()
  let opened = false
  // The first attempt says at once what is wrong; after that nothing ends the attempts but our close.
  const reconnectStrategy = (retries: number): number | false =>
    opened ? Math.min(50 * 2 ** Math.min(retries, 10), RECONNECT_MAX_MS) : false
  const { tls } = address
  const socket = { connectTimeout: timeoutMs, reconnectStrategy, ...tls }
  const node = { RESP, socket, disableOfflineQueue: true, name: 'millrace' } as const
  const made =
    address.url !== undefined
      ? anyClient(redis.createClient({ ...node, url: address.url, commandOptions: NO_LIMIT }))
      : address.cluster !== undefined
        ? anyClient(redis.createCluster({ ...clusterOptions(address.cluster, tls), RESP }))
        : anyClient(redis.createSentinel(sentinelOptions(address.sentinels, timeoutMs, tls)))
  if (made === undefined) throw new Error('the client of @redis/client has another shape')
  const { client } = made
  /** With sentinels the client throws that none is available, and tells beside it what each of them said. */
  let told: unknown
  client.on('error', (error) => {
    if (!opened && error instanceof Error) told = error
  })
  // The client limits the connection of the socket, not what a server that hangs owes it afterwards.
  const giveUp = (): void => client.destroy()
  const cancel = clock.after(timeoutMs, giveUp)
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    await client.connect()
    // With sentinels (@redis/client 6.3.1) `connect` also resolves when it was given up between two looks at them.
    if (!client.isOpen) throw new Error(`no connection within ${timeoutMs} ms`)
  } catch (error) {
    signal.throwIfAborted()
    throw refusal(error, told)
  } finally {
    cancel()
    signal.removeEventListener('abort', giveUp)
  }
  opened = true
  return made.kind === 'single' ? singleWire(made.client, true) : manyWire(made, true)
}

/** First words of what a server says that does not let us in. */
const NOT_LET_IN: ReadonlySet<unknown> = new Set(['WRONGPASS', 'NOAUTH', 'NOPERM'])

function refusal(error: unknown, told: unknown): MillraceError {
  const all = told === undefined || told === error ? [error] : [error, told]
  const why = all.map(said).join(': ')
  const cause = told ?? error
  if (all.some((one) => NOT_LET_IN.has(wordOf(one)))) {
    return new MillraceError(
      'MILLRACE_DENIED',
      `cannot connect to Redis, it does not let this account in (${why}); check user and password, with sentinels their own ones, too`,
      { cause },
    )
  }
  return new RedisConnectionError(
    `cannot connect to Redis (${why}); check that it runs and that address and account are right`,
    'notApplied',
    cause,
  )
}

function said(error: unknown): string {
  return error instanceof Error ? redact(error.message || error.name) : String(error)
}

function givenWire(value: unknown): Wire {
  const given = anyClient(value)
  if (given === undefined) throw new Error('expected a client of @redis/client')
  if (!given.client.isOpen) {
    throw new RedisConnectionError(
      'the client that was given is not connected; call connect() on it first',
      'notApplied',
    )
  }
  return given.kind === 'single' ? singleWire(given.client, false) : manyWire(given, false)
}

function clusterOptions(urls: readonly string[], tls: object | undefined) {
  const first = new URL(urls[0] ?? '')
  // Nodes that are found later are reached as the first one is.
  return {
    rootNodes: urls.map((url) => ({ url })),
    defaults: {
      ...(first.username === '' ? {} : { username: decodeURIComponent(first.username) }),
      ...(first.password === '' ? {} : { password: decodeURIComponent(first.password) }),
      ...(first.protocol === 'rediss:' ? { socket: { tls: true as const, ...tls } } : {}),
    },
  }
}

function sentinelOptions(given: Sentinels, connectTimeout: number, tls: object | undefined) {
  const { name, nodes } = given
  const plain = { connectTimeout }
  const secure = { connectTimeout, tls: true as const, ...tls }
  return {
    name,
    RESP,
    // A command whose connection is lost must be told as that, and not be sent again behind our back.
    maxCommandRediscovers: 0,
    sentinelRootNodes: nodes.map(({ host, port }) => ({ host, port })),
    nodeClientOptions: {
      ...loginOf(given.username, given.password),
      socket: given.tls === true ? secure : plain,
    },
    sentinelClientOptions: {
      ...loginOf(given.sentinelUsername, given.sentinelPassword),
      socket: given.sentinelTls === true ? secure : plain,
    },
  } as const
}

function loginOf(username: string | undefined, password: string | undefined) {
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
  }
}

type RedisModule = typeof import('@redis/client')

async function loadRedis(): Promise<RedisModule> {
  try {
    return await import('@redis/client')
  } catch (error) {
    throw new MillraceError(
      'MILLRACE_MISSING_CLIENT',
      'redis needs the package @redis/client; run `npm install @redis/client`, or pass { client } with the one that you have',
      { cause: error },
    )
  }
}
