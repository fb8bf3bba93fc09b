import type {
  API,
  Broker,
  ClusterMetadata,
  ClusterTopicMetadata,
  Connection,
  Producer,
} from '@platformatic/kafka'
import type { Clock } from '../../model/clock.ts'
import { MillraceError } from '../../model/errors.ts'
import type { Logger } from '../../model/logger.ts'
import { read } from '../../model/probe.ts'
import { unknownQueueError } from '../../transport/own-errors.ts'
import { withinLimit as limited } from '../../transport/within-limit.ts'
import type { Purpose, Resolved } from './options.ts'

export type KafkaModule = typeof import('@platformatic/kafka')
/** A producer is also the plainest client of the package that can make connections. */
export type Client = Producer<Buffer, Buffer, Buffer, Buffer>

/** What everything in this folder works with. */
export interface Cluster {
  readonly module: KafkaModule
  readonly options: Resolved
  readonly open: (purpose: Purpose) => Client
  /** For calls that answer at once: topics, offsets, commits. */
  readonly asking: Client
  readonly sending: Client
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  readonly closing: AbortSignal
}

export async function loadClient(): Promise<KafkaModule> {
  try {
    return await import('@platformatic/kafka')
  } catch (cause) {
    if (read(cause, 'code') !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new MillraceError(
      'MILLRACE_MISSING_CLIENT',
      'kafka() needs the package @platformatic/kafka: npm install @platformatic/kafka',
      { cause },
    )
  }
}

export type Limits = Pick<Cluster, 'clock' | 'options' | 'closing'>
export type Asking = Limits & Pick<Cluster, 'asking' | 'random'>

/** Waits for a call no longer than its limit, and not beyond `closing` or the signal. */
export function withinLimit<T>(
  { clock, options, closing }: Limits,
  what: string,
  call: Promise<T>,
  signal?: AbortSignal,
  limitMs: number = options.timeoutMs,
): Promise<T> {
  const late = (): Error => lateError(what, limitMs)
  return limited(call, { clock, limitMs, late, ends: [closing, signal] })
}

const late = new WeakSet<object>()

function lateError(what: string, limitMs: number): MillraceError {
  const message = `kafka: ${what} took longer than ${limitMs} ms`
  const error = new MillraceError('MILLRACE_UNAVAILABLE', message, { retryable: true })
  late.add(error)
  return error
}

function isLate(error: unknown): boolean {
  return typeof error === 'object' && error !== null && late.has(error)
}

export interface Call {
  readonly cluster: Limits
  readonly client: Client
  readonly broker: Broker
  /** For the error that says how long it took. */
  readonly what: string
  /** Default: `timeoutMs`. */
  readonly limitMs?: number
  readonly signal?: AbortSignal
}

/**
 * One request to one broker. A connection that does not answer in time is given up, so that the next call gets a new one; it need
 * not be the one of the pool any more. One that only comes about has a limit of its own, and ended from outside it would stay in the
 * pool: the client does not hear it.
 */
export async function ask<Request extends unknown[], Response>(
  { cluster, client, broker, what, limitMs, signal }: Call,
  { async: send }: API<Request, Response>,
  ...request: Request
): Promise<Response> {
  let asked: Connection | undefined
  let isGivenUp = false
  const call = client.connections.get(broker).then((connection) => {
    // A join that nobody waits for would make a member that never comes.
    if (isGivenUp) throw new Error(`${what} was given up`)
    asked = connection
    return send(connection, ...request)
  })
  try {
    return await withinLimit(cluster, what, call, signal, limitMs)
  } catch (error) {
    isGivenUp = true
    if (isLate(error)) asked?.socket?.destroy()
    throw error
  }
}

const CLOSE_MS = 2_000

/**
 * Never rejects; bounded in time, as the client waits for the end of each connection. One that waits to write to a broker that
 * reads nothing would not end, and keep the process up.
 */
export async function closeClient(
  { clock }: Pick<Cluster, 'clock'>,
  client: Pick<Client, 'close' | 'connections'>,
): Promise<void> {
  // The client forgets them when it closes. One that could not be made, with a certificate that is none, has no socket, whatever its type says.
  const sockets = [...client.connections].flatMap(([, { socket }]) => socket ?? [])
  const late = (): Error => lateError('a close', CLOSE_MS)
  await limited(client.close(), { clock, limitMs: CLOSE_MS, late, ends: [] }).catch(() => {})
  for (const socket of sockets) socket.destroy()
}

/** A broker that is known; another one each time, as the last one may be away. */
export async function anyBroker(cluster: Asking): Promise<Broker> {
  const { asking, random } = cluster
  const look = asking.metadata({ topics: [] })
  const { brokers } = await withinLimit(cluster, 'asking for the brokers', look)
  const all = [...brokers.values()]
  const chosen = all[Math.floor(random() * all.length)]
  if (chosen === undefined)
    throw new MillraceError('MILLRACE_UNAVAILABLE', 'kafka: no broker is known')
  return chosen
}

export interface Topic extends ClusterTopicMetadata {
  readonly brokers: ClusterMetadata['brokers']
}

export interface TopicCall {
  /** The brokers are asked, whatever is known. Default false. */
  readonly forceUpdate?: boolean
  readonly signal?: AbortSignal
}

/** @throws MILLRACE_UNKNOWN_QUEUE when there is no such topic */
export async function topicOf(
  cluster: Limits,
  client: Client,
  queue: string,
  topic: string,
  { forceUpdate = false, signal }: TopicCall = {},
): Promise<Topic> {
  const look = client.metadata({ topics: [topic], forceUpdate })
  const { brokers, topics } = await withinLimit(cluster, 'asking for a topic', look, signal).catch(
    (error: unknown) => {
      throw isUnknownTopic(error) ? unknownQueueError(queue) : error
    },
  )
  const found = topics.get(topic)
  if (found === undefined) throw unknownQueueError(queue)
  return { ...found, brokers }
}

/** The client wraps the broker's answer in an error of its own that has no code. */
export function isUnknownTopic(error: unknown): boolean {
  const message = read(error, 'message')
  return (
    read(error, 'code') === 'PLT_KFK_USER' &&
    typeof message === 'string' &&
    message.startsWith('Unknown topic')
  )
}
