import { createClient } from '@redis/client'
import { DEFAULT_OWNER, type Harness } from 'millrace/conformance'
import { type RedisAddress, redis } from 'millrace/redis'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { freshPrefix, type RedisServer } from './redis-servers.ts'

const { signal } = new AbortController()

export interface RedisHarnessOptions {
  readonly name: string
  readonly address: RedisAddress
  readonly prefix?: string
  /** Frees what `address` needed. */
  readonly dispose?: () => Promise<void>
}

export async function redisHarness({
  name,
  address,
  prefix = freshPrefix(),
  dispose,
}: RedisHarnessOptions): Promise<Harness> {
  const connect = (): Promise<Transport> => connectRedis(address, prefix)
  const first = await connect()
  let queues = 0
  return {
    name,
    connect,
    async freshQueue({ maxDepth, owner = DEFAULT_OWNER } = {}) {
      queues += 1
      const queue = `queue {${queues}}`
      await first.topology.ensure([{ name: queue, owner, maxDepth }], signal)
      return queue
    },
    slow: 1,
    leaseMs: 500,
    async dispose() {
      await first.close()
      await dispose?.()
    },
  }
}

export function connectRedis(address: RedisAddress, prefix: string): Promise<Transport> {
  return redis({ ...address, prefix }).connect({
    signal,
    clock: systemClock(),
    random: Math.random,
    logger: silentLogger,
    migrate: 'auto',
  })
}

/** With a client of the user's, which every connection of the harness shares. */
export async function givenClient({ name, url }: RedisServer): Promise<RedisHarnessOptions> {
  const client = createClient({ url })
  client.on('error', () => {})
  await client.connect()
  return { name: `${name}, client`, address: { client }, dispose: () => client.close() }
}
