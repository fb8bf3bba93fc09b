import { closedError } from '../../model/closed-error.ts'
import type { ConnectContext, Connector, Transport } from '../../transport/transport.ts'
import { type Client, type Cluster, type KafkaModule, loadClient, withinLimit } from './client.ts'
import { type KafkaOptions, type Purpose, type Resolved, resolve } from './options.ts'
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
  const open = opener(module, options, random)
  const asking = open('asking')
  const sending = open('sending')
  const end = async (): Promise<void> => {
    closing.abort(closedError('the transport'))
    await Promise.all([asking, sending].map((client) => client.close().catch(() => {})))
  }
  const parts = { module, options, open, asking, sending, clock, random, logger }
  const cluster: Cluster = { ...parts, closing: closing.signal }
  try {
    const look = asking.metadata({ topics: [] })
    const { brokers } = await withinLimit(cluster, 'connecting', look, signal)
    return kafkaTransport(cluster, brokers.size > 1, end)
  } catch (error) {
    await end()
    throw error
  }
}

/** Of a send; everything else is tried again by us, or by who asked. */
const SEND_RETRIES = 3
const SEND_RETRY_MS = 200
const CONNECT_MS = 10_000
/** A join waits for all other members. */
const LONGEST_CALL_MS = 2_147_483_647

function opener(
  module: KafkaModule,
  { address, timeoutMs, compression }: Resolved,
  random: () => number,
): (purpose: Purpose) => Client {
  if (address.connect !== undefined) return address.connect
  const { brokers, connection } = address
  const list = typeof brokers === 'string' ? [brokers] : [...brokers]
  return (purpose) =>
    new module.Producer({
      connectTimeout: Math.min(timeoutMs, CONNECT_MS),
      ...connection,
      clientId: `millrace-${purpose}-${Math.floor(random() * 2 ** 32).toString(36)}`,
      bootstrapBrokers: list,
      autocreateTopics: false,
      compression,
      requestTimeout: purpose === 'grouping' ? LONGEST_CALL_MS : timeoutMs,
      timeout: timeoutMs,
      retries: purpose === 'sending' ? SEND_RETRIES : 0,
      retryDelay: SEND_RETRY_MS,
    })
}
