import { Producer } from '@platformatic/kafka'
import { kafka } from 'millrace/kafka'
import { settleEach } from '../../src/layers/settle-each.ts'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import type { KafkaSettings } from '../../src/transports/kafka/options.ts'

export const { signal } = new AbortController()

export interface Connected {
  readonly transport: Transport
  /** Ends all its connections, as a network does that lost them. */
  cut(): void
}

/** Short sessions, settled one by one, as an app has it. */
export async function connected(brokers: string, settings: KafkaSettings = {}): Promise<Connected> {
  const clients: Producer<Buffer, Buffer, Buffer, Buffer>[] = []
  const connector = kafka({
    connect: (purpose) => {
      const client = new Producer<Buffer, Buffer, Buffer, Buffer>({
        clientId: `faults-${purpose}`,
        bootstrapBrokers: brokers.split(','),
        autocreateTopics: false,
        retries: purpose === 'sending' ? 3 : 0,
        retryDelay: 100,
      })
      clients.push(client)
      return client
    },
    ...{ partitions: 6, sessionTimeoutMs: 1_500, heartbeatMs: 100, timeoutMs: 2_000, ...settings },
  })
  const context = { signal, clock: systemClock(), random: Math.random, logger: silentLogger }
  return {
    transport: settleEach(await connector.connect({ ...context, migrate: 'auto' })),
    cut: () => {
      for (const client of clients) {
        for (const [, connection] of client.connections) connection.socket.destroy()
      }
    },
  }
}

export function subscribed(transport: Transport): Promise<Subscription> {
  return transport.subscribe('q', { group: 'g', leaseMs: 60_000, maxInFlight: 100 })
}
