import { createClient } from '@redis/client'
import { DEFAULT_OWNER, type Harness } from 'millrace/conformance'
import { type RedisAddress, type RedisNames, redis } from 'millrace/redis'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { freshPrefix, type RedisServer } from './redis-servers.ts'

const { signal } = new AbortController()

export interface RedisHarnessOptions {
  readonly name: string
  readonly address: RedisAddress
  readonly prefix?: string
  /** Every second queue is a stream with a name of its own. */
  readonly named?: boolean
  /** Frees what `address` needed. */
  readonly dispose?: () => Promise<void>
}

export async function redisHarness({
  name,
  address,
  prefix = freshPrefix(),
  named = false,
  dispose,
}: RedisHarnessOptions): Promise<Harness> {
  const own = named ? streamsOf(prefix) : {}
  const connect = (): Promise<Transport> => connectRedis(address, prefix, own)
  const first = await connect()
  let queues = 0
  return {
    name,
    connect,
    async freshQueue({ maxDepth, owner = DEFAULT_OWNER, onDead = 'continue', ageingMs } = {}) {
      queues += 1
      const queue = `queue {${queues}}`
      const ageing = ageingMs === undefined ? {} : { ageingMs }
      await first.topology.ensure([{ name: queue, owner, maxDepth, onDead, ...ageing }], signal)
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

/** More than a kit has queues. */
const NAMED_MAX = 1_000

/** Without a hash tag, and with one. */
function streamsOf(prefix: string): Readonly<Record<string, RedisNames>> {
  const all = Array.from({ length: NAMED_MAX }, (_, n): [string, RedisNames] => {
    const stream = n % 2 === 0 ? `${prefix}-stream-${n}` : `{${prefix}-${n}}:stream`
    return [`queue {${2 * n}}`, { stream, group: `workers ${n}` }]
  })
  return Object.fromEntries(all)
}

function connectRedis(
  address: RedisAddress,
  prefix: string,
  queues: Readonly<Record<string, RedisNames>>,
): Promise<Transport> {
  return redis({ ...address, prefix, queues }).connect({
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
