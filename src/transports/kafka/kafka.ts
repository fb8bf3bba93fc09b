import { closedError } from '../../model/closed-error.ts'
import type { ConnectContext, Connector, Transport } from '../../transport/transport.ts'
import {
  type Client,
  closeClient,
  type KafkaModule,
  type Limits,
  loadClient,
  withinLimit,
} from './client.ts'
import { clientConnection } from './connection.ts'
import { type KafkaOptions, type Purpose, type Resolved, resolve } from './options.ts'
import { connectRefusal } from './refusal.ts'
import { kafkaTransport } from './transport.ts'

/**
 * Queues that are topics of Kafka, 3.2 or newer, each read by one consumer group.
 *
 * @example
 * const app = await createMillrace({ transport: kafka({ brokers: 'localhost:9092', retry: 'park' }), store, queues: [deliveries] })
 * @throws MILLRACE_INVALID_OPTIONS
 */
export function kafka(options: KafkaOptions): Connector {
  const resolved = resolve(options)
  return { name: 'kafka', connect: (context) => connect(resolved, context) }
}

async function connect(options: Resolved, context: ConnectContext): Promise<Transport> {
  const { signal, clock, random, logger } = context
  signal.throwIfAborted()
  const module = await loadClient()
  const closing = new AbortController()
  const limits = { clock, options, closing: closing.signal }
  const { open, asking, isReplicated } = await reach(module, limits, random, signal)
  const sending = open('sending')
  const end = async (): Promise<void> => {
    closing.abort(closedError('the transport'))
    await Promise.all([asking, sending].map((client) => closeClient(limits, client)))
  }
  const parts = { module, open, asking, sending, random, logger }
  return kafkaTransport({ ...parts, ...limits }, isReplicated, end)
}

interface Reached {
  readonly open: (purpose: Purpose) => Client
  readonly asking: Client
  readonly isReplicated: boolean
}

/**
 * Asks one broker after the other until one answers; it is the first that later connections ask. One that takes a connection
 * and stays silent would be asked again and again by the client.
 */
async function reach(
  module: KafkaModule,
  limits: Limits,
  random: () => number,
  signal: AbortSignal,
): Promise<Reached> {
  const { address, timeoutMs } = limits.options
  const hosts = hostsOf(address)
  const { connection = {} } = address
  const errors: unknown[] = []
  for (let first = 0; first < Math.max(1, hosts.length); first += 1) {
    const open = opener(module, limits.options, random, first)
    const asking = open('asking')
    try {
      const share = Math.ceil(timeoutMs / Math.max(1, hosts.length))
      const look = asking.metadata({ topics: [] })
      const { brokers } = await withinLimit(limits, 'connecting', look, signal, share)
      // With fewer copies a confirmed message may lie on one broker alone; topics that would do that are refused.
      const isReplicated = brokers.size > 1 && limits.options.minInsyncReplicas > 1
      return { open, asking, isReplicated }
    } catch (error) {
      await closeClient(limits, asking)
      errors.push(error)
      if (signal.aborted) throw error
      // Whoever lets this account not in says the same on all.
      const refusal = connectRefusal(error, hosts.length, connection)
      if (refusal?.code === 'MILLRACE_DENIED') throw refusal
    }
  }
  const all = errors.length === 1 ? errors[0] : new AggregateError(errors, 'no broker answers')
  throw connectRefusal(all, hosts.length, connection) ?? all
}

function hostsOf({ brokers }: Resolved['address']): readonly string[] {
  if (brokers === undefined) return []
  return typeof brokers === 'string' ? [brokers] : brokers
}

/** Of a send; everything else is tried again by us, or by who asked. */
const SEND_RETRIES = 3
const SEND_RETRY_MS = 200
/** A join waits for all other members. */
const LONGEST_CALL_MS = 2_147_483_647

function opener(
  module: KafkaModule,
  { address, timeoutMs, compression, metadataMaxAgeMs }: Resolved,
  random: () => number,
  first: number,
): (purpose: Purpose) => Client {
  if (address.connect !== undefined) return address.connect
  const { connection = {} } = address
  const hosts = hostsOf(address)
  const list = [...hosts.slice(first), ...hosts.slice(0, first)]
  return (purpose) =>
    new module.Producer({
      ...clientConnection(connection, timeoutMs, hosts.length),
      clientId: `millrace-${purpose}-${Math.floor(random() * 2 ** 32).toString(36)}`,
      bootstrapBrokers: list,
      autocreateTopics: false,
      compression,
      metadataMaxAge: metadataMaxAgeMs,
      requestTimeout: purpose === 'grouping' ? LONGEST_CALL_MS : timeoutMs,
      timeout: timeoutMs,
      retries: purpose === 'sending' ? SEND_RETRIES : 0,
      retryDelay: SEND_RETRY_MS,
    })
}
