import type { SQSClient, SQSClientConfig } from '@aws-sdk/client-sqs'
import { closedError } from '../../model/closed-error.ts'
import { MillraceError } from '../../model/errors.ts'
import { read } from '../../model/probe.ts'
import { type Problems, problems, show } from '../../model/problems.ts'
import type { ConnectContext, Connector, Transport } from '../../transport/transport.ts'
import { type Sdk, sqsApi } from './api.ts'
import { isArn, isQueueName, isUrl, openPlaces } from './places.ts'
import type { Kind, Store } from './store.ts'
import type { TopologyMode } from './topology.ts'
import { sqsTransport } from './transport.ts'

export interface SqsOptions {
  /** Default: where the SDK finds one (AWS_REGION, the profile). */
  readonly region?: string
  /** Another server that speaks SQS, or a VPC endpoint. */
  readonly endpoint?: string
  /** Default: the SDK's chain (environment, profile, container, instance). */
  readonly credentials?: NonNullable<SQSClientConfig['credentials']>
  /** An SQSClient of yours, instead of region, endpoint and credentials; it stays open. */
  readonly client?: SQSClient
  /** `fifo`: all queues of this transport are FIFO queues. Default `standard`. */
  readonly kind?: Kind
  /** Before the names of queues that `queues` does not name. Default none. */
  readonly prefix?: string
  /** The URL, ARN or name at SQS, by the queue's name. Default: the queue's own name, with `.fifo` where it must be. */
  readonly queues?: Readonly<Record<string, string>>
  /** `create` makes queues that are missing, `check` refuses to start without them, `none` looks at nothing. Default `create`. */
  readonly topology?: TopologyMode
  /** Messages come through SNS without raw delivery: its envelope is taken off. Default false. */
  readonly sns?: boolean
  /** How long a call may take, in ms, long polls on top; 100 to 600,000. Default 30,000. */
  readonly timeoutMs?: number
}

interface Resolved extends SqsOptions {
  readonly kind: Kind
  readonly prefix: string
  readonly queues: Readonly<Record<string, string>>
  readonly topology: TopologyMode
  readonly sns: boolean
  readonly timeoutMs: number
}

/**
 * Queues at Amazon SQS. Needs the package `@aws-sdk/client-sqs`.
 *
 * @example
 * const app = await createMillrace({ transport: sqs({ region: 'eu-west-1' }), store, queues: [deliveries] })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function sqs(options: SqsOptions = {}): Connector {
  const resolved = resolve(options)
  return { name: 'sqs', connect: (context) => connect(resolved, context) }
}

async function connect(options: Resolved, context: ConnectContext): Promise<Transport> {
  const { clock, logger, signal } = context
  const { kind, prefix, queues, sns, timeoutMs, topology } = options
  signal.throwIfAborted()
  const sdk = await loadSdk()
  const client = options.client ?? ownClient(sdk, options)
  const closing = new AbortController()
  const ended = new AbortController()
  const api = sqsApi({ sdk, client, clock, timeoutMs, ended: ended.signal })
  const places = openPlaces({ api, kind, prefix, queues })
  const store: Store = {
    api,
    places,
    kind,
    sns,
    clock,
    logger,
    closing: closing.signal,
    overLimit: new Set(),
  }
  return sqsTransport({
    store,
    topology,
    begin: () => closing.abort(closedError('the transport')),
    end: () => {
      ended.abort(closedError('the transport'))
      if (client !== options.client) client.destroy()
    },
  })
}

/** Long polls keep a connection each; sends and acks must not wait for one. */
const SOCKETS = 256
const CONNECT_TIMEOUT_MS = 10_000

function ownClient(sdk: Sdk, { region, endpoint, credentials }: Resolved): SQSClient {
  const sockets = { maxSockets: SOCKETS, keepAlive: true }
  return new sdk.SQSClient({
    // The runtime tries again, and must know when the outcome is unknown.
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      httpAgent: sockets,
      httpsAgent: sockets,
    },
    ...(region === undefined ? {} : { region }),
    // Queue URLs name the server as it sees itself, which is another one behind a proxy.
    ...(endpoint === undefined ? {} : { endpoint, useQueueUrlAsEndpoint: false }),
    ...(credentials === undefined ? {} : { credentials }),
  })
}

async function loadSdk(): Promise<Sdk> {
  try {
    return await import('@aws-sdk/client-sqs')
  } catch (error) {
    throw new MillraceError(
      'MILLRACE_MISSING_CLIENT',
      'sqs needs the package @aws-sdk/client-sqs; run `npm install @aws-sdk/client-sqs`',
      { cause: error },
    )
  }
}

const KNOWN = [
  'region',
  'endpoint',
  'credentials',
  'client',
  'kind',
  'prefix',
  'queues',
  'topology',
  'sns',
  'timeoutMs',
]
const TIMEOUT = { min: 100, max: 600_000, default: 30_000 } as const

function resolve(options: SqsOptions): Resolved {
  const found = problems('sqs')
  found.knownKeys(options, KNOWN)
  const { kind = 'standard', prefix = '', queues = {}, topology = 'create', sns = false } = options
  const choices = { kind: [kind, KINDS], topology: [topology, MODES] } as const
  for (const [name, [value, allowed]] of Object.entries(choices)) {
    if (!allowed.some((each) => each === value)) {
      found.add(`${name}: expected ${allowed.join(', ')}, got ${show(value)}`)
    }
  }
  if (typeof sns !== 'boolean') found.add(`sns: expected true or false, got ${show(sns)}`)
  if (typeof prefix !== 'string' || !/^[\w-]{0,60}$/.test(prefix)) {
    found.add(`prefix: expected letters, digits, - and _, at most 60, got ${show(prefix)}`)
  }
  checkClient(found, options)
  checkQueues(found, queues, kind)
  const timeoutMs = found.number('timeoutMs', options.timeoutMs, { ...TIMEOUT, integer: false })
  found.throwIfAny()
  return { ...options, kind, prefix, queues: { ...queues }, topology, sns, timeoutMs }
}

const KINDS = ['standard', 'fifo'] as const
const MODES = ['create', 'check', 'none'] as const

function checkClient(found: Problems, options: SqsOptions): void {
  const { client, region, endpoint } = options
  if (client !== undefined) {
    if (typeof read(client, 'send') !== 'function') {
      found.add(`client: expected an SQSClient, got ${show(client)}`)
    }
    const given = (['region', 'endpoint', 'credentials'] as const).filter(
      (name) => options[name] !== undefined,
    )
    for (const name of given) found.add(`${name}: the client has its own; give one or the other`)
  }
  if (region !== undefined && (typeof region !== 'string' || region === '')) {
    found.add(`region: expected a name such as eu-west-1, got ${show(region)}`)
  }
  // The address is not shown: it may hold a password.
  if (endpoint !== undefined && (typeof endpoint !== 'string' || !URL.canParse(endpoint))) {
    found.add('endpoint: expected an address such as https://sqs.eu-west-1.amazonaws.com')
  }
}

function checkQueues(found: Problems, queues: unknown, kind: unknown): void {
  if (typeof queues !== 'object' || queues === null || Array.isArray(queues)) {
    found.add(`queues: expected URLs, ARNs or names by queue, got ${show(queues)}`)
    return
  }
  for (const [queue, text] of Object.entries(queues)) {
    const isPlace = typeof text === 'string' && (isUrl(text) || isArn(text) || isQueueName(text))
    if (!isPlace) {
      found.add(`queues.${queue}: expected a URL, an ARN or a name of SQS, got ${show(text)}`)
    } else if (text.endsWith('.fifo') !== (kind === 'fifo')) {
      found.add(
        `queues.${queue}: names of FIFO queues end in .fifo, others do not, and kind is ${show(kind)}`,
      )
    }
  }
}
