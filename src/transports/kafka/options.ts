import { isObject, read } from '../../model/probe.ts'
import { type Problems, problems, show } from '../../model/problems.ts'
import type { Client } from './client.ts'
import { checkConnection, type KafkaConnection } from './connection.ts'

export type KafkaOptions = KafkaSettings & KafkaAddress

export type KafkaAddress =
  | {
      /** `host:port`, one or several to begin with. Needs the package `@platformatic/kafka`. */
      readonly brokers: string | readonly string[]
      /** TLS, and who we are. */
      readonly connection?: KafkaConnection
      readonly connect?: never
    }
  | {
      /** Makes a client, `new Producer({ …, autocreateTopics: false })` of the package; called once for each purpose, closed by us. */
      readonly connect: (purpose: Purpose) => Client
      readonly brokers?: never
      readonly connection?: never
    }

/** Waiting for news, for a group or for a confirmation holds up all other calls of a connection, so each has its own. */
export type Purpose = 'sending' | 'asking' | 'reading' | 'grouping'

export interface KafkaSettings {
  /**
   * What happens to a message whose attempt failed. `hold`: its partition waits and order is kept. `park`: a copy waits and
   * order is not kept. Asked for at start-up.
   */
  readonly retry?: KafkaRetry
  /**
   * Where dead letters are kept. `topic` (default): in a compacted topic of each queue, `<topic>.dead`; `store`: on the shelf
   * of the store. What is in the one is not seen by an app that is set to the other.
   */
  readonly deadLetters?: KafkaDeadLetters
  /** Before each topic that `queues` does not name. Default none. */
  readonly prefix?: string
  /** Where a queue is on the broker, by its name here. */
  readonly queues?: Readonly<Record<string, KafkaNames>>
  /**
   * `create` makes missing topics and leaves alone what is there; `check` makes nothing; both refuse what would lose messages,
   * and list it all. `none` looks at nothing. Default `create`.
   */
  readonly topology?: 'create' | 'check' | 'none'
  /** Of topics that are made here; 1 to 10,000. Default 12. More of them later break the order of keys. */
  readonly partitions?: number
  /** Copies of topics that are made here; -1 (default) is the broker's own default. */
  readonly replicas?: number
  /** How long a message must stay, in ms, also unread: topics are made so, shorter ones refused. Default 604,800,000 (7 days). */
  readonly retentionMs?: number
  /** Topics that confirm a message with fewer copies are refused. Default 1; topics are made with it when it is more. */
  readonly minInsyncReplicas?: number
  /** Where a group begins that has committed nothing. Default `earliest`; `latest` skips what was sent before. */
  readonly startFrom?: 'earliest' | 'latest'
  /** Default `none`. Reading knows all of them. */
  readonly compression?: Compression
  /** Largest record batch, the broker's `max.message.bytes`. Default 1,048,588. Bodies may be 48,588 bytes smaller. */
  readonly maxMessageBytes?: number
  /**
   * A consumer that is silent for so long loses its partitions, in ms; 1,000 to 1,800,000. Default 45,000. Its own `ctx.tx` is
   * refused a tenth sooner.
   */
  readonly sessionTimeoutMs?: number
  /** How often a consumer says that it lives, in ms; at most a third of `sessionTimeoutMs`. Default 3,000. */
  readonly heartbeatMs?: number
  /**
   * How often brokers are asked for partitions that were added to a topic, in ms, by its senders and by its group; 1,000 to 3,600,000.
   * Default 60,000.
   */
  readonly metadataMaxAgeMs?: number
  /** How long handlers have to end when their partition goes to another consumer, in ms; 0 to 600,000. Default 30,000. */
  readonly revokeDrainMs?: number
  /** How long a call may take, in ms; 100 to 600,000. Default 30,000. */
  readonly timeoutMs?: number
}

export type KafkaDeadLetters = 'topic' | 'store'
export type KafkaRetry = 'hold' | 'park'
export type Compression = 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd'

export interface KafkaNames {
  /** Default: the queue's name with `prefix`. */
  readonly topic?: string
  /** The consumer group. Default: `millrace.` and the topic. */
  readonly group?: string
  /** The topic of its dead letters. Default: the topic and `.dead`. */
  readonly dead?: string
}

/** A queue's topic and the group that reads it. */
export interface Place {
  readonly topic: string
  readonly group: string
}

export interface Resolved extends Required<Omit<KafkaSettings, 'retry'>> {
  readonly retry: KafkaRetry | undefined
  readonly address: KafkaAddress
}

const KNOWN: readonly string[] = [
  'brokers',
  'connection',
  'connect',
  'retry',
  'deadLetters',
  'prefix',
  'queues',
  'topology',
  'partitions',
  'replicas',
  'retentionMs',
  'minInsyncReplicas',
  'startFrom',
  'compression',
  'maxMessageBytes',
  'sessionTimeoutMs',
  'heartbeatMs',
  'revokeDrainMs',
  'metadataMaxAgeMs',
  'timeoutMs',
]

const WEEK_MS = 604_800_000
const SESSION = { min: 1_000, max: 1_800_000, default: 45_000 } as const

/** @throws MILLRACE_INVALID_OPTIONS */
export function resolve(options: KafkaOptions): Resolved {
  const found = problems('kafka')
  found.knownKeys(options, KNOWN)
  const { retry, deadLetters = 'topic', prefix = '', queues = {} } = options
  const { topology = 'create', startFrom = 'earliest', compression = 'none' } = options
  checkAddress(found, options)
  if (retry !== undefined) oneOf(found, 'retry', retry, ['hold', 'park'])
  oneOf(found, 'deadLetters', deadLetters, ['topic', 'store'])
  oneOf(found, 'topology', topology, ['create', 'check', 'none'])
  oneOf(found, 'startFrom', startFrom, ['earliest', 'latest'])
  oneOf(found, 'compression', compression, ['none', 'gzip', 'snappy', 'lz4', 'zstd'])
  checkName(found, 'prefix', prefix, true)
  checkQueues(found, queues)
  const numbers = checkNumbers(found, options)
  found.throwIfAny()
  return {
    address: options,
    ...{ retry, deadLetters, prefix, queues, topology, startFrom, compression },
    ...numbers,
  }
}

function checkNumbers(
  found: Problems,
  options: KafkaOptions,
): Pick<
  Resolved,
  | 'partitions'
  | 'replicas'
  | 'retentionMs'
  | 'minInsyncReplicas'
  | 'maxMessageBytes'
  | 'sessionTimeoutMs'
  | 'heartbeatMs'
  | 'revokeDrainMs'
  | 'metadataMaxAgeMs'
  | 'timeoutMs'
> {
  const within = (name: keyof KafkaSettings, min: number, max: number, standard: number): number =>
    found.number(name, options[name], { min, max, default: standard })
  const sessionTimeoutMs = found.number('sessionTimeoutMs', options.sessionTimeoutMs, SESSION)
  const heartbeatMax = Math.floor(sessionTimeoutMs / 3)
  return {
    sessionTimeoutMs,
    heartbeatMs: within('heartbeatMs', 50, heartbeatMax, Math.min(3_000, heartbeatMax)),
    partitions: within('partitions', 1, 10_000, 12),
    replicas: within('replicas', -1, 100, -1),
    retentionMs: within('retentionMs', 1_000, 100 * 365 * 86_400_000, WEEK_MS),
    minInsyncReplicas: within('minInsyncReplicas', 1, 100, 1),
    maxMessageBytes: within('maxMessageBytes', 100_000, 512 * 1024 * 1024, 1_048_588),
    revokeDrainMs: within('revokeDrainMs', 0, 600_000, 30_000),
    metadataMaxAgeMs: within('metadataMaxAgeMs', 1_000, 3_600_000, 60_000),
    timeoutMs: within('timeoutMs', 100, 600_000, 30_000),
  }
}

function checkAddress(found: Problems, { brokers, connection, connect }: KafkaOptions): void {
  if ((brokers === undefined) === (connect === undefined)) {
    found.add('expected either brokers (host:port) or connect (a function that makes a client)')
  }
  found.optionalFunction('connect', connect)
  checkConnection(found, connection)
  if (brokers === undefined) return
  const list: readonly unknown[] = Array.isArray(brokers) ? brokers : [brokers]
  if (list.length === 0) found.add('brokers: expected at least one address, got an empty list')
  for (const one of list) {
    if (typeof one === 'string' && /^[^\s/@]+:\d{1,5}$/.test(one)) continue
    found.add(
      `brokers: expected host:port, got ${typeof one === 'string' ? 'another text' : show(one)}`,
    )
  }
}

function oneOf(found: Problems, name: string, value: unknown, known: readonly string[]): void {
  if (typeof value === 'string' && known.includes(value)) return
  found.add(`${name}: expected ${known.map(show).join(' or ')}, got ${show(value)}`)
}

/** What Kafka takes as the name of a topic. */
const NAME = /^[A-Za-z0-9._-]{1,249}$/

function checkName(found: Problems, name: string, value: unknown, mayBeEmpty = false): void {
  if (typeof value === 'string' && (NAME.test(value) || (mayBeEmpty && value === ''))) return
  found.add(
    `${name}: expected up to 249 letters, digits, dots, underscores and dashes, got ${show(value)}`,
  )
}

function checkQueues(found: Problems, queues: unknown): void {
  if (!isObject(queues)) {
    found.add(`queues: expected an object of names, got ${show(queues)}`)
    return
  }
  for (const [name, names] of Object.entries(queues)) {
    const within = `queues.${name}`
    found.knownKeys(names, ['topic', 'group', 'dead'], within)
    for (const key of ['topic', 'group', 'dead']) {
      const value = read(names, key)
      if (value !== undefined) checkName(found, `${within}.${key}`, value)
    }
  }
}

/** The topic of a queue and the group that reads it. */
export function placeOf(
  { prefix, queues }: Pick<Resolved, 'prefix' | 'queues'>,
  queue: string,
): Place {
  const named = Object.hasOwn(queues, queue) ? queues[queue] : undefined
  const topic = named?.topic ?? `${prefix}${queue}`
  return { topic, group: named?.group ?? `millrace.${topic}` }
}

/** The topic of a queue's dead letters. */
export function deadTopicOf(options: Pick<Resolved, 'prefix' | 'queues'>, queue: string): string {
  const { queues } = options
  const named = Object.hasOwn(queues, queue) ? queues[queue] : undefined
  return named?.dead ?? `${placeOf(options, queue).topic}.dead`
}

/** What is wrong with a topic's name; undefined when nothing is. */
export function nameProblem(topic: string): string | undefined {
  if (NAME.test(topic) && topic !== '.' && topic !== '..') return undefined
  return `topic ${show(topic)}: Kafka takes up to 249 letters, digits, dots, underscores and dashes; name it in queues`
}
