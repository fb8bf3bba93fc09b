import { Producer } from '@platformatic/kafka'
import { DEFAULT_OWNER, type Harness } from 'millrace/conformance'
import { kafka } from 'millrace/kafka'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { QueueSpec, Transport } from '../../src/transport/transport.ts'
import type { KafkaSettings } from '../../src/transports/kafka/options.ts'
import type { MortalTop } from '../layers/bare-harness.ts'

export interface KafkaHarnessOptions {
  readonly brokers: string
  readonly name?: string
  readonly settings?: KafkaSettings
  /** What stands on the transport. */
  readonly on?: (inner: Transport) => MortalTop | Promise<MortalTop>
}

/** Quick to notice a consumer that is gone; the test broker allows no shorter session. */
export const quick = { sessionTimeoutMs: 1_500, heartbeatMs: 100 } as const

let harnesses = 0

/** Topics with one partition, so that what the kit says of order can be asked. */
export function kafkaHarness({ brokers, name, settings, on }: KafkaHarnessOptions): Harness {
  const clock = systemClock()
  const signal = new AbortController().signal
  harnesses += 1
  const run = `${Date.now().toString(36)}-${process.pid}-${harnesses}`
  const clients = new WeakMap<Transport, readonly Producer<Buffer, Buffer, Buffer, Buffer>[]>()
  const open = new Set<MortalTop>()
  const known: QueueSpec[] = []
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
    const layered: MortalTop = on === undefined ? raw : await on(raw)
    // Layers learn of a queue when it is ensured. Every connection knows every queue, as in an app; the last ones are asked for.
    await layered.topology.ensure(known.slice(-2), signal)
    const close = (): Promise<void> => {
      open.delete(transport)
      return layered.close()
    }
    const transport = { ...layered, close }
    open.add(transport)
    clients.set(transport, made)
    return transport
  }
  return {
    name: name ?? 'kafka',
    // Kits run side by side here, and a session that ends on a busy machine takes a rebalance to come back.
    slow: 6,
    leaseMs: 500,
    connect,
    async freshQueue({ owner = DEFAULT_OWNER } = {}) {
      const spec = { name: `kit-${run}-${known.length + 1}`, owner, maxDepth: undefined }
      known.push(spec)
      const asked = open.size > 0 ? [...open] : [await connect()]
      for (const transport of asked) await transport.topology.ensure([spec], signal)
      return spec.name
    },
    // Its connections end as those of a killed process do: nobody leaves the group. Then what its layers still do ends too.
    vanish: async (transport) => {
      for (const one of open) if (one === transport) one.die?.()
      for (const client of clients.get(transport) ?? []) await client.close()
      await transport.close()
    },
    dispose: async () => {
      await Promise.all([...open].map((transport) => transport.close()))
    },
  }
}
