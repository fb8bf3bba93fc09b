import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { kafka } from 'millrace/kafka'
import { rabbitmq } from 'millrace/rabbitmq'
import { sqs } from 'millrace/sqs'
import { startElasticmq } from '../../scripts/rig/elasticmq-server.ts'
import { startKafka } from '../../scripts/rig/kafka-server.ts'
import { startRabbitmq } from '../../scripts/rig/rabbitmq-server.ts'
import type { BackendName } from '../backends.ts'
import { type Connector, SQS_ACCOUNT } from '../transports/broker-connectors.ts'

export type FrozenName = 'rabbitmq' | 'kafka' | 'sqs'

/** A server of its own, which a test may stop with SIGSTOP. */
export interface Freezable {
  readonly address: string
  readonly pid: number
  stop(): Promise<void>
}

export interface FrozenSubject {
  readonly backend: BackendName
  /** As large as one message may be by default: more of them than the buffers of a connection hold. */
  readonly bodyBytes: number
  start(): Promise<Freezable>
  connector(address: string): Connector
}

export const frozenSubjects: Readonly<Record<FrozenName, FrozenSubject>> = {
  rabbitmq: {
    backend: 'rabbitmq',
    bodyBytes: 900_000,
    start: async () => {
      const server = await startRabbitmq()
      return { address: server.url, pid: pidOf(server.folder), stop: () => server.stop() }
    },
    connector: (url) => rabbitmq({ url }),
  },
  kafka: {
    backend: 'kafka',
    bodyBytes: 900_000,
    start: async () => {
      const server = await startKafka()
      const [node] = server.nodes
      if (node === undefined) throw new Error('no broker')
      const address = server.brokers.join(',')
      return { address, pid: pidOf(node.folder), stop: () => server.stop() }
    },
    connector: (brokers) => kafka({ brokers: brokers.split(','), retry: 'hold' }),
  },
  sqs: {
    backend: 'sqs elasticmq',
    bodyBytes: 200_000,
    start: async () => {
      const server = await startElasticmq()
      return { address: server.url, pid: pidOf(server.folder), stop: () => server.stop() }
    },
    connector: (endpoint) => sqs({ ...SQS_ACCOUNT, endpoint }),
  },
}

function pidOf(folder: string): number {
  return Number(readFileSync(join(folder, 'server.pid'), 'utf8'))
}
