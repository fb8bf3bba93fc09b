import { Producer } from '@platformatic/kafka'
import type { Harness } from 'millrace/conformance'
import { kafka } from 'millrace/kafka'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Transport } from '../../src/transport/transport.ts'
import type { KafkaSettings } from '../../src/transports/kafka/options.ts'

export interface KafkaHarnessOptions {
  readonly brokers: string
  readonly name?: string
  readonly settings?: KafkaSettings
  /** What stands on the transport. */
  readonly on?: (inner: Transport) => Transport | Promise<Transport>
}

/** Quick to notice a consumer that is gone; the test broker allows no shorter session. */
export const quick = { sessionTimeoutMs: 1_500, heartbeatMs: 100 } as const

/** Topics with one partition, so that what the kit says of order can be asked. */
export function kafkaHarness({ brokers, name, settings, on }: KafkaHarnessOptions): Harness {
  const clock = systemClock()
  const signal = new AbortController().signal
  const run = `${Date.now().toString(36)}-${process.pid}`
  const clients = new WeakMap<Transport, readonly Producer<Buffer, Buffer, Buffer, Buffer>[]>()
  let queues = 0
  const connect = async (): Promise<Transport> => {
    const made: Producer<Buffer, Buffer, Buffer, Buffer>[] = []
    const connector = kafka({
      connect: (purpose) => {
        const client = new Producer<Buffer, Buffer, Buffer, Buffer>({
          clientId: `test-${purpose}`,
          bootstrapBrokers: brokers.split(','),
          autocreateTopics: false,
          retries: purpose === 'sending' ? 3 : 0,
          retryDelay: 100,
        })
        made.push(client)
        return client
      },
      ...{ partitions: 1, ...quick, revokeDrainMs: 500, ...settings },
    })
    const random = Math.random
    const raw = await connector.connect({
      signal,
      clock,
      random,
      logger: silentLogger,
      migrate: 'auto',
    })
    const transport = on === undefined ? raw : await on(raw)
    clients.set(transport, made)
    return transport
  }
  return {
    name: name ?? 'kafka',
    slow: 3,
    leaseMs: 500,
    connect,
    async freshQueue() {
      queues += 1
      const queue = `kit-${run}-${queues}`
      const transport = await connect()
      await transport.topology.ensure([{ name: queue, owner: 'team', maxDepth: undefined }], signal)
      await transport.close()
      return queue
    },
    // Its connections end as those of a killed process do: nobody leaves the group.
    vanish: async (transport) => {
      for (const client of clients.get(transport) ?? []) await client.close()
    },
    async dispose() {},
  }
}
