import { isObject, read } from '../../model/probe.ts'
import { type Problems, problems, show } from '../../model/problems.ts'
import { redact } from '../../model/redact.ts'
import type { AmqpConnection } from './amqp-shapes.ts'
import { landingKey, ROUTING_KEY_MAX } from './ladder.ts'

export type RabbitmqOptions = RabbitmqSettings & RabbitmqAddress

export type RabbitmqAddress =
  | {
      /**
       * `amqp://user:password@host:port/vhost`, or `amqps:` for TLS; several are tried in turn, from a random one on.
       * Needs the package `amqplib`.
       */
      readonly url: string | readonly string[]
      /**
       * Handed to amqplib's `connect`: the options of Node's `tls.connect` (`ca`, `cert`, `key`, …) and `credentials`.
       */
      readonly socket?: object
      readonly connect?: never
    }
  | {
      /** Opens a connection of amqplib, each time that one is needed: two at the start, more after an outage. */
      readonly connect: () => Promise<AmqpConnection>
      readonly url?: never
      readonly socket?: never
    }

export interface RabbitmqSettings {
  /** Default `quorum`. What `classic` can not: counting deliveries, surviving the loss of a node. */
  readonly queueType?: 'quorum' | 'classic'
  /**
   * `create` makes what is missing and leaves alone what is there; `check` makes nothing; both refuse what would lose
   * messages, and list it all. `none` looks at nothing. Default `create`.
   */
  readonly topology?: 'create' | 'check' | 'none'
  /** Before the name of each queue that `queues` does not name. Default none. */
  readonly prefix?: string
  /** Where a queue is on the broker, by its name here. */
  readonly queues?: Readonly<Record<string, RabbitmqNames>>
  /**
   * How many lanes a queue with `orderingKey` has, 1 to 256; default 16. A lane is a queue of the broker and has one consumer at
   * a time. It is kept with the broker; another number is refused until the queue was emptied and deleted.
   */
  readonly lanes?: number
  /**
   * Whether the broker delays messages, by queues that all share (docs/decisions/0007-rabbitmq.md). Default true, with
   * `topology: 'none'` false.
   */
  readonly delays?: boolean
  /** Before the names of these queues and exchanges. Default `millrace.delay`. */
  readonly delayPrefix?: string
  /** `http://user:password@host:15672`: lets start-up see policies, and list differences by field. */
  readonly management?: { readonly url: string }
  /** How long the broker lets a delivery go without an ack, in ms. Default 1,800,000, as RabbitMQ's own. */
  readonly consumerTimeoutMs?: number
  /** How long a call may take, in ms; 100 to 600,000. Default 30,000. */
  readonly timeoutMs?: number
  /**
   * How soon a dead connection is noticed (twice this), in ms; 1,000 to 600,000. Default 10,000. Only with `url`. A process that
   * stood still for 1.8 times this commits no effect with `ctx.tx` of what it had in hand.
   */
  readonly heartbeatMs?: number
}

export interface RabbitmqNames {
  /** The queue to consume from. Default: the name with `prefix`. */
  readonly queue?: string
  /** The exchange to publish to. Default: the default exchange. */
  readonly exchange?: string
  /** Default: the name of the queue. */
  readonly routingKey?: string
  /** Of a queue with `orderingKey`: as `lanes`, for this one. */
  readonly lanes?: number
}

export interface Resolved {
  readonly address: RabbitmqAddress
  readonly queueType: 'quorum' | 'classic'
  readonly topology: 'create' | 'check' | 'none'
  readonly prefix: string
  readonly queues: Readonly<Record<string, RabbitmqNames>>
  readonly lanes: number
  readonly delays: boolean
  readonly delayPrefix: string
  readonly managementUrl: string | undefined
  readonly consumerTimeoutMs: number
  readonly timeoutMs: number
  readonly heartbeatMs: number
}

const KNOWN: readonly string[] = [
  'url',
  'socket',
  'connect',
  'queueType',
  'topology',
  'prefix',
  'queues',
  'lanes',
  'delays',
  'delayPrefix',
  'management',
  'consumerTimeoutMs',
  'timeoutMs',
  'heartbeatMs',
]

const LANES = { min: 1, max: 256, default: 16 } as const
const TIMEOUT = { min: 100, max: 600_000, default: 30_000 } as const
const HEARTBEAT = { min: 1_000, max: 600_000, default: 10_000 } as const
const CONSUMER_TIMEOUT = { min: 1_000, max: 2_147_483_647, default: 1_800_000 } as const
/** Of a queue or an exchange, in bytes (AMQP 0-9-1, shortstr). */
const NAME_MAX = 255
const DELAY_PREFIX_MAX = 200

/** @throws MILLRACE_INVALID_OPTIONS */
export function resolve(options: RabbitmqOptions): Resolved {
  const found = problems('rabbitmq')
  found.knownKeys(options, KNOWN)
  const { topology = 'create', queueType = 'quorum', management, queues = {} } = options
  const { prefix = '', delays = topology !== 'none', delayPrefix = 'millrace.delay' } = options
  checkAddress(found, options)
  oneOf(found, 'queueType', queueType, ['quorum', 'classic'])
  oneOf(found, 'topology', topology, ['create', 'check', 'none'])
  checkText(found, 'prefix', prefix, 0, NAME_MAX)
  checkText(found, 'delayPrefix', delayPrefix, 1, DELAY_PREFIX_MAX)
  if (typeof delays !== 'boolean') found.add(`delays: expected true or false, got ${show(delays)}`)
  checkQueues(found, queues)
  if (management !== undefined) {
    found.knownKeys(management, ['url'], 'management')
    checkUrl(found, 'management.url', read(management, 'url'), ['http:', 'https:'])
  }
  const lanes = found.number('lanes', options.lanes, LANES)
  const rules = { timeoutMs: TIMEOUT, heartbeatMs: HEARTBEAT, consumerTimeoutMs: CONSUMER_TIMEOUT }
  const timeoutMs = found.number('timeoutMs', options.timeoutMs, rules.timeoutMs)
  const heartbeatMs = found.number('heartbeatMs', options.heartbeatMs, rules.heartbeatMs)
  const consumerTimeoutMs = found.number(
    'consumerTimeoutMs',
    options.consumerTimeoutMs,
    rules.consumerTimeoutMs,
  )
  found.throwIfAny()
  return {
    address: options,
    ...{ queueType, topology, prefix, queues, lanes, delays, delayPrefix },
    managementUrl: management?.url,
    ...{ consumerTimeoutMs, timeoutMs, heartbeatMs },
  }
}

function checkAddress(found: Problems, { url, socket, connect }: RabbitmqOptions): void {
  if ((url === undefined) === (connect === undefined)) {
    found.add(
      'expected either url (amqp://host/vhost) or connect (a function that opens a connection)',
    )
  }
  found.optionalFunction('connect', connect)
  if (socket !== undefined && !isObject(socket)) {
    found.add(`socket: expected an object of options, got ${show(socket)}`)
  }
  if (url === undefined) return
  const urls: readonly unknown[] = Array.isArray(url) ? url : [url]
  if (urls.length === 0) found.add('url: expected at least one address, got an empty list')
  for (const one of urls) checkUrl(found, 'url', one, ['amqp:', 'amqps:'])
}

function checkUrl(found: Problems, name: string, url: unknown, protocols: readonly string[]): void {
  if (typeof url === 'string' && URL.canParse(url) && protocols.includes(new URL(url).protocol))
    return
  const shown = show(typeof url === 'string' ? redact(url) : url)
  found.add(
    `${name}: expected an address that begins with ${protocols.join('// or ')}//, got ${shown}`,
  )
}

function oneOf(found: Problems, name: string, value: unknown, known: readonly string[]): void {
  if (typeof value === 'string' && known.includes(value)) return
  found.add(`${name}: expected ${known.map(show).join(' or ')}, got ${show(value)}`)
}

function checkText(found: Problems, name: string, value: unknown, min: number, max: number): void {
  if (typeof value === 'string' && value.length >= min && Buffer.byteLength(value) <= max) return
  found.add(`${name}: expected a text of ${min} to ${max} bytes, got ${show(value)}`)
}

function checkQueues(found: Problems, queues: unknown): void {
  if (!isObject(queues)) {
    found.add(`queues: expected an object of names, got ${show(queues)}`)
    return
  }
  for (const [name, names] of Object.entries(queues)) {
    const within = `queues.${name}`
    found.knownKeys(names, ['queue', 'exchange', 'routingKey', 'lanes'], within)
    found.number(`${within}.lanes`, read(names, 'lanes'), LANES)
    for (const key of ['queue', 'exchange', 'routingKey']) {
      const value = read(names, key)
      if (value !== undefined)
        checkText(found, `${within}.${key}`, value, key === 'queue' ? 1 : 0, NAME_MAX)
    }
  }
}

/** What is wrong with a queue's name on the broker; undefined when nothing is. */
export function nameProblem(queue: string, delays: boolean): string | undefined {
  if (Buffer.byteLength(queue) > NAME_MAX)
    return `queue "${queue}": its name has more than 255 bytes`
  if (queue.startsWith('amq.'))
    return `queue "${queue}": names that begin with amq. are the broker's own`
  if (delays && Buffer.byteLength(landingKey(queue)) > ROUTING_KEY_MAX) {
    return `queue "${queue}": its name is too long for delays, take at most 200 bytes or pass delays: false`
  }
  return undefined
}
