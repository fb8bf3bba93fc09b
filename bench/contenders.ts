import type { Backend, Contender } from './contender.ts'

const DRAINS = ['drain', 'drain-effect']
const SQLITE_FULL = 'WAL, synchronous=FULL: survives a power cut'
const SQLITE_NORMAL = 'WAL, synchronous=NORMAL: survives a crash of the process, not a power cut'
const REDIS = 'Redis 7.0, appendonly, appendfsync=always: survives a power cut'
const REDIS_EVERYSEC =
  'Redis 7.0, appendonly, appendfsync=everysec: survives a crash of the process, not a power cut'
const NATS = 'NATS 2.15, file storage, sync_interval=always: survives a power cut'
const RABBITMQ =
  'RabbitMQ 3.10, a quorum queue on one node, confirms after its disk: survives a power cut'
const KAFKA =
  'Kafka 4.4, one node, acks of all, idempotent: survives a crash of the process, not a power cut'
const SQS =
  'ElasticMQ 1.7 in the place of SQS, in memory: survives a crash of the client, not a power cut'
const POSTGRES = 'fsync=on, synchronous_commit=on: survives a power cut'

function ours(
  backend: Backend,
  durability: string,
  concurrency: number,
  more: { synchronous?: 'normal'; fsync?: 'everysec'; only?: readonly string[] } = {},
): Contender {
  const { synchronous, fsync, only } = more
  return {
    id: ['millrace', backend, concurrency, synchronous, fsync].filter(Boolean).join('-'),
    label: `Millrace, concurrency ${concurrency}`,
    backend,
    ours: true,
    module: 'millrace.ts',
    variant: [backend, concurrency, synchronous ?? 'full'].join(' '),
    durability,
    settings: `concurrency ${concurrency}, capacity unbounded, payload checked by zod`,
    ...(fsync ? { fsync } : {}),
    ...(only ? { only } : {}),
  }
}

type Peer = Omit<Contender, 'backend' | 'ours' | 'variant' | 'durability'>

function peer(backend: Backend, durability: string, given: Peer): Contender {
  return { ...given, backend, ours: false, variant: '', durability }
}

/** On both settings of the disk. */
function onRedis(given: Peer): readonly Contender[] {
  return [
    peer('redis', REDIS, given),
    { ...peer('redis', REDIS_EVERYSEC, given), id: `${given.id}-everysec`, fsync: 'everysec' },
  ]
}

const PLAINJOB = {
  backend: 'sqlite',
  ours: false,
  module: 'peers/plainjob.ts',
  settings: 'better-sqlite3, one worker (its design), poll 5 ms instead of 1 s',
} as const

export const CONTENDERS: readonly Contender[] = [
  ours('memory', 'lost with the process', 64),
  ours('memory', 'lost with the process', 256, { only: DRAINS }),
  ours('sqlite', SQLITE_FULL, 64),
  ours('sqlite', SQLITE_FULL, 256, { only: DRAINS }),
  ours('sqlite', SQLITE_NORMAL, 64, { synchronous: 'normal' }),
  { ...PLAINJOB, id: 'plainjob-full', label: 'plainjob', variant: 'full', durability: SQLITE_FULL },
  {
    ...PLAINJOB,
    id: 'plainjob-normal',
    label: 'plainjob, as it comes',
    variant: 'normal',
    durability: SQLITE_NORMAL,
  },
  ours('postgres', POSTGRES, 64),
  ours('postgres', POSTGRES, 256, { only: DRAINS }),
  peer('postgres', POSTGRES, {
    id: 'pg-boss',
    label: 'pg-boss',
    module: 'peers/pg-boss.ts',
    settings:
      'batchSize 500, localConcurrency 4, burstWhenBatchFull, useListenNotify, polling 0.5 s; effect: transactional, batchSize 50 (one transaction for 50 messages)',
  }),
  peer('postgres', POSTGRES, {
    id: 'graphile-worker',
    label: 'graphile-worker',
    module: 'peers/graphile-worker.ts',
    settings:
      'its performance page: concurrentJobs 24, maxPoolSize 25, localQueue 500, completeJobBatchDelay 0; effect: an insert with a key, committed apart from the completion',
  }),
  ours('redis', REDIS, 64),
  ours('redis', REDIS, 256, { only: DRAINS }),
  ours('redis', REDIS_EVERYSEC, 64, { fsync: 'everysec' }),
  ours('redis', REDIS_EVERYSEC, 256, { fsync: 'everysec', only: DRAINS }),
  ...onRedis({
    id: 'bullmq',
    label: 'BullMQ',
    module: 'peers/bullmq.ts',
    settings: 'ioredis, concurrency 256, removeOnComplete, addBulk',
  }),
  ...onRedis({
    id: 'bee-queue',
    label: 'bee-queue',
    module: 'peers/bee-queue.ts',
    settings: 'concurrency 256, removeOnSuccess, no events, saveAll',
  }),
  ...onRedis({
    id: 'redis-streams',
    label: 'Redis Streams, the client alone',
    raw: true,
    module: 'peers/redis-streams.ts',
    settings: 'XADD, XREADGROUP of 256, XACK and XDEL of 256 while the next ones are read',
  }),
  ours('nats', NATS, 64),
  ours('nats', NATS, 256, { only: DRAINS }),
  peer('nats', NATS, {
    id: 'jetstream',
    label: 'JetStream, the client alone',
    raw: true,
    module: 'peers/jetstream.ts',
    settings: 'publish with msgID, consume with max_messages 256, every ack confirmed (ackAck)',
  }),
  ours('rabbitmq', RABBITMQ, 64),
  ours('rabbitmq', RABBITMQ, 256, { only: DRAINS }),
  peer('rabbitmq', RABBITMQ, {
    id: 'amqplib',
    label: 'amqplib, the client alone',
    raw: true,
    module: 'peers/amqplib.ts',
    settings: 'confirmed mandatory publishes, prefetch 256, each message acked by hand',
  }),
  ours('kafka', KAFKA, 64),
  ours('kafka', KAFKA, 256, { only: DRAINS }),
  peer('kafka', KAFKA, {
    id: 'platformatic-kafka',
    label: '@platformatic/kafka, the client alone',
    raw: true,
    module: 'peers/platformatic-kafka.ts',
    settings: '12 partitions, positions committed after every 256 messages',
  }),
  peer('kafka', KAFKA, {
    id: 'kafkajs',
    label: 'kafkajs',
    module: 'peers/kafkajs.ts',
    settings: '12 partitions, eachMessage, positions committed after each batch',
  }),
  ours('sqs', SQS, 64),
  ours('sqs', SQS, 256, { only: DRAINS }),
  peer('sqs', SQS, {
    id: 'sqs-sdk',
    label: 'AWS SDK, the client alone',
    raw: true,
    module: 'peers/sqs-sdk.ts',
    settings: 'SendMessage, or batches of 10 side by side; 8 loops that receive 10 and delete 10',
  }),
  peer('sqs', SQS, {
    id: 'sqs-consumer',
    label: 'sqs-consumer',
    module: 'peers/sqs-consumer.ts',
    settings: 'sends as the SDK alone; 8 consumers, batchSize 10, handleMessageBatch',
  }),
]
