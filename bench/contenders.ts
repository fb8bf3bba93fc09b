import type { Backend, Contender } from './contender.ts'

const DRAINS = ['drain', 'drain-effect']
const SQLITE_FULL = 'WAL, synchronous=FULL: survives a power cut'
const SQLITE_NORMAL = 'WAL, synchronous=NORMAL: survives a crash of the process, not a power cut'
const REDIS = 'Redis 7.0, appendonly, appendfsync=always: survives a power cut'
const NATS = 'NATS 2.15, file storage, sync_interval=always: survives a power cut'
const POSTGRES = 'fsync=on, synchronous_commit=on: survives a power cut'

function ours(
  backend: Backend,
  durability: string,
  concurrency: number,
  more: { synchronous?: 'normal'; only?: readonly string[] } = {},
): Contender {
  const { synchronous, only } = more
  return {
    id: ['millrace', backend, concurrency, synchronous].filter(Boolean).join('-'),
    label: `Millrace, concurrency ${concurrency}`,
    backend,
    ours: true,
    module: 'millrace.ts',
    variant: [backend, concurrency, synchronous ?? 'full'].join(' '),
    durability,
    settings: `concurrency ${concurrency}, capacity unbounded, payload checked by zod`,
    ...(only ? { only } : {}),
  }
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
  {
    id: 'pg-boss',
    label: 'pg-boss',
    backend: 'postgres',
    ours: false,
    module: 'peers/pg-boss.ts',
    variant: '',
    durability: POSTGRES,
    settings:
      'batchSize 500, localConcurrency 4, burstWhenBatchFull, useListenNotify, polling 0.5 s; effect: transactional, batchSize 50 (one transaction for 50 messages)',
  },
  {
    id: 'graphile-worker',
    label: 'graphile-worker',
    backend: 'postgres',
    ours: false,
    module: 'peers/graphile-worker.ts',
    variant: '',
    durability: POSTGRES,
    settings:
      'its performance page: concurrentJobs 24, maxPoolSize 25, localQueue 500, completeJobBatchDelay 0; effect: an insert with a key, committed apart from the completion',
  },
  ours('redis', REDIS, 64),
  ours('redis', REDIS, 256, { only: DRAINS }),
  {
    id: 'bullmq',
    label: 'BullMQ',
    backend: 'redis',
    ours: false,
    module: 'peers/bullmq.ts',
    variant: '',
    durability: REDIS,
    settings: 'ioredis, concurrency 256, removeOnComplete, addBulk',
  },
  ours('nats', NATS, 64),
  ours('nats', NATS, 256, { only: DRAINS }),
  {
    id: 'jetstream',
    label: 'JetStream, the client alone',
    backend: 'nats',
    ours: false,
    module: 'peers/jetstream.ts',
    variant: '',
    durability: NATS,
    settings: 'publish with msgID, consume with max_messages 256, every ack confirmed (ackAck)',
  },
]
