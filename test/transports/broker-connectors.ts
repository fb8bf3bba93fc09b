import type { MillraceOptions } from 'millrace'
import { kafka } from 'millrace/kafka'
import { nats } from 'millrace/nats'
import { rabbitmq } from 'millrace/rabbitmq'
import { redis } from 'millrace/redis'
import { sqs } from 'millrace/sqs'
import type { BackendName } from '../backends.ts'

export type Connector = MillraceOptions['transport']
/** What it is called, the server that it needs, and how an app is put on it. */
export type Subject = readonly [string, BackendName, (url: string) => Connector]

/** Stand-ins take any. */
export const SQS_ACCOUNT = {
  region: 'elasticmq',
  credentials: { accessKeyId: 'x', secretAccessKey: 'x' },
} as const

/** Each broker with nothing but what start-up asks for. */
export const brokerConnectors: readonly Subject[] = [
  ['redis', 'redis 7', (url) => redis({ url })],
  ['rabbitmq', 'rabbitmq', (url) => rabbitmq({ url })],
  ['nats', 'nats', (url) => nats({ servers: url })],
  ['sqs', 'sqs elasticmq', (endpoint) => sqs({ ...SQS_ACCOUNT, endpoint })],
  ['kafka, held', 'kafka', (broker) => kafka({ brokers: [broker], retry: 'hold' })],
  ['kafka, parked', 'kafka', (broker) => kafka({ brokers: [broker], retry: 'park' })],
]
