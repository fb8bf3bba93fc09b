import type { NatsConnection } from '@nats-io/transport-node'
import { read } from '../../model/probe.ts'
import { type Problems, problems, show } from '../../model/problems.ts'
import type { NatsAddress } from './client.ts'
import { NAME_MAX, type QueuePlace } from './names.ts'
import type { QueueSettings } from './store.ts'

export interface NatsSettings {
  /** What streams, consumers and subjects begin with; letters, digits, `-` and `_`. Default `millrace`. */
  readonly prefix?: string
  /** Existing names, per queue; those that are not said are made from `prefix` and the queue's name. */
  readonly queues?: Readonly<Record<string, QueuePlace>>
  /**
   * Keeps queues with an `orderingKey` in order: each key belongs to one of so many lanes, and of each lane one message is handed out at
   * a time, to whichever worker; 1 to 256. A key waits while its lane does, so take some times as many as all workers have slots.
   * It is fixed when the queue's stream is made; `queues` can say another number for a queue. Default: none, and such queues are refused.
   */
  readonly lanes?: number
  /**
   * `create` (default) makes the streams and consumers that are missing; `check` makes none; `none` does not even look. What
   * is there is never changed, and the first two refuse what would lose messages, each difference by its name.
   */
  readonly topology?: 'create' | 'check' | 'none'
  /** Copies of each stream in a cluster, 1 to 5. Default 1. */
  readonly replicas?: number
  /**
   * How long the server waits for a sign of a worker before it hands the message to another one, in ms; 500 to 3,600,000.
   * Default 30,000. Renewed three times within it, so leases may be longer.
   */
  readonly ackWaitMs?: number
  /**
   * How many messages of a queue may be handed out or wait after a release at the same time; 100 to 10,000,000. Default
   * 100,000. When it is reached, the server hands out nothing new.
   */
  readonly maxUnacked?: number
  /** How long the server knows an id that was sent, in ms; 1,000 to 86,400,000. Default 120,000, the server's own. */
  readonly duplicateWindowMs?: number
  /**
   * The longest that a message may take from its sending to its end, retries included, in ms. Default 14 days. A stream whose
   * `max_age` is shorter is refused, and so is one whose `max_age` is shorter than all retries of its queue.
   */
  readonly horizonMs?: number
  /**
   * Whether the server holds delayed messages back, which it can from 2.12 on. Default true. Pass false where a stream was made
   * without `allow_msg_schedules`: then a store keeps them.
   */
  readonly schedules?: boolean
  /** How long one call may take, connecting included, in ms; 100 to 600,000. Default 10,000. */
  readonly timeoutMs?: number
  /** JetStream's domain, behind leaf nodes. Default: the server's own. */
  readonly domain?: string
  /** Where inboxes are made, for accounts that allow only some. Default: `client.inboxPrefix`, else `_INBOX`. */
  readonly inboxPrefix?: string
}

export interface Resolved {
  readonly address: NatsAddress
  readonly prefix: string
  readonly queues: Readonly<Record<string, QueuePlace>>
  readonly settings: QueueSettings
  readonly timeoutMs: number
  readonly inboxPrefix: string | undefined
  readonly domain: string | undefined
}

type NatsOptions = NatsSettings & NatsAddress

const KNOWN = [
  'servers',
  'client',
  'connection',
  'prefix',
  'queues',
  'lanes',
  'topology',
  'replicas',
  'ackWaitMs',
  'maxUnacked',
  'duplicateWindowMs',
  'horizonMs',
  'schedules',
  'timeoutMs',
  'domain',
  'inboxPrefix',
]
const DAY_MS = 24 * 3_600_000
const TOPOLOGIES = ['create', 'check', 'none'] as const

/** @throws MILLRACE_INVALID_OPTIONS with all that is wrong */
export function resolve(options: NatsOptions): Resolved {
  const found = problems('nats')
  found.knownKeys(options, KNOWN)
  const {
    prefix = 'millrace',
    queues = {},
    schedules = true,
    inboxPrefix = options.client?.inboxPrefix,
  } = options
  const topology = TOPOLOGIES.find((one) => one === (options.topology ?? 'create'))
  if (topology === undefined) {
    found.add(`topology: expected create, check or none, got ${show(options.topology)}`)
  }
  if (typeof prefix !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(prefix)) {
    found.add(`prefix: expected 1 to 64 letters, digits, - or _, got ${show(prefix)}`)
  }
  if (typeof schedules !== 'boolean') {
    found.add(`schedules: expected true or false, got ${show(schedules)}`)
  }
  for (const [name, value] of Object.entries({ domain: options.domain, inboxPrefix })) {
    if (value !== undefined && (typeof value !== 'string' || !SUBJECT.test(value))) {
      found.add(`${name}: expected a text without spaces and wildcards, got ${show(value)}`)
    }
  }
  checkAddress(found, options)
  checkQueues(found, queues, options.lanes)
  const settings: QueueSettings = {
    topology: topology ?? 'create',
    replicas: found.number('replicas', options.replicas, { min: 1, max: 5, default: 1 }),
    ackWaitMs: found.number('ackWaitMs', options.ackWaitMs, ACK_WAIT),
    maxUnacked: found.number('maxUnacked', options.maxUnacked, MAX_UNACKED),
    unackedAsked: options.maxUnacked,
    duplicateWindowMs: found.number('duplicateWindowMs', options.duplicateWindowMs, WINDOW),
    schedules,
    lanes: options.lanes === undefined ? undefined : found.number('lanes', options.lanes, LANES),
    horizonMs: found.number('horizonMs', options.horizonMs, HORIZON),
  }
  const timeoutMs = found.number('timeoutMs', options.timeoutMs, TIMEOUT)
  found.throwIfAny()
  return {
    address: options,
    prefix,
    queues,
    settings,
    timeoutMs,
    inboxPrefix,
    domain: options.domain,
  }
}

const ACK_WAIT = { min: 500, max: 3_600_000, default: 30_000 } as const
const MAX_UNACKED = { min: 100, max: 10_000_000, default: 100_000 } as const
const LANES = { min: 1, max: 256 } as const
const WINDOW = { min: 1_000, max: DAY_MS, default: 120_000 } as const
const HORIZON = { min: 1_000, max: 3_650 * DAY_MS, default: 14 * DAY_MS } as const
const TIMEOUT = { min: 100, max: 600_000, integer: false, default: 10_000 } as const

function checkAddress(found: Problems, options: NatsOptions): void {
  const { servers, connection, client } = options
  if ((servers === undefined) === (connection === undefined)) {
    found.add(
      'servers or connection: expected one of them, an address such as nats://host:4222 or a connection of @nats-io/transport-node',
    )
    return
  }
  if (connection !== undefined) {
    if (!isConnection(connection)) {
      found.add(
        `connection: expected a connection of @nats-io/transport-node, got ${show(connection)}`,
      )
    }
    if (client !== undefined)
      found.add('client: only together with servers; a connection has its own')
    return
  }
  const all: readonly unknown[] = Array.isArray(servers) ? servers : [servers]
  if (all.length === 0) found.add('servers: expected at least one address, got an empty list')
  for (const one of all) {
    // The address itself is never shown, because it may hold a password.
    if (!isAddress(one)) {
      found.add(
        `servers: expected addresses such as nats://host:4222, got ${typeof one === 'string' ? 'a text that is none' : show(one)}`,
      )
    }
  }
}

function isAddress(value: unknown): boolean {
  if (typeof value !== 'string' || !/^((nats|tls):\/\/)?[^\s/]+\/?$/.test(value)) return false
  return URL.canParse(value.includes('://') ? value : `nats://${value}`)
}

function isConnection(value: unknown): value is NatsConnection {
  return ['request', 'subscribe', 'publish', 'status', 'isClosed'].every(
    (name) => typeof read(value, name) === 'function',
  )
}

const PHYSICAL = ['stream', 'subject', 'consumer', 'shelf'] as const

function checkQueues(found: Problems, queues: unknown, lanes: unknown): void {
  if (typeof queues !== 'object' || queues === null) {
    found.add(
      `queues: expected { [queue]: { stream, subject, consumer, shelf, lanes } }, got ${show(queues)}`,
    )
    return
  }
  for (const [queue, names] of Object.entries(queues)) {
    const within = `queues[${JSON.stringify(queue)}]`
    found.knownKeys(names, [...PHYSICAL, 'lanes'], within)
    const own = read(names, 'lanes')
    if (own !== undefined) found.number(`${within}.lanes`, own, LANES)
    if (own !== undefined && lanes === undefined) {
      found.add(`${within}.lanes: only together with lanes, the number for all other queues`)
    }
    for (const name of PHYSICAL) {
      const value = read(names, name)
      if (value === undefined) continue
      const pattern = name === 'subject' ? SUBJECT : NAME
      if (typeof value !== 'string' || value.length > NAME_MAX || !pattern.test(value)) {
        const wanted =
          name === 'subject'
            ? 'a subject without wildcards'
            : 'a name without spaces, dots, slashes and wildcards'
        found.add(`${within}.${name}: expected ${wanted}, got ${show(value)}`)
      }
    }
  }
}

const NAME = /^[^\s.*>/\\]+$/
const SUBJECT = /^[^\s.*>]+(\.[^\s.*>]+)*$/
