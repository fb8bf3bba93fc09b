import { startElasticmq } from '../scripts/rig/elasticmq-server.ts'
import { startKafka } from '../scripts/rig/kafka-server.ts'
import { startNats } from '../scripts/rig/nats-server.ts'
import { startRabbitmq } from '../scripts/rig/rabbitmq-server.ts'
import { startRedis } from '../scripts/rig/redis-server.ts'
import { startRig } from '../scripts/rig/rig.ts'
import type { Backend } from './contender.ts'
import type { Servers } from './places.ts'

export interface Running {
  readonly servers: Servers
  /** Why a server is not there, by backend. */
  readonly missing: ReadonlyMap<Backend, string>
  stop(): Promise<void>
}

interface Started {
  readonly url: string
  stop(): Promise<void>
}

const STARTS: Readonly<Partial<Record<Backend, () => Promise<Started>>>> = {
  postgres: startPostgres,
  redis: () => startRedis('redis 7'),
  nats: () => startNats(),
  // More than the tests give it: with less its memory alarm stops the sends of a long run.
  rabbitmq: () => startRabbitmq({ config: ['vm_memory_high_watermark.absolute = 4GB'] }),
  kafka: async () => {
    const { brokers, stop } = await startKafka()
    return { url: brokers.join(','), stop }
  },
  sqs: () => startElasticmq(),
}

/** Private servers, but for Postgres, which may be the user's: everything in a broker is removed between contenders. */
export async function startServers(backends: ReadonlySet<Backend>): Promise<Running> {
  const started: Started[] = []
  const servers: Partial<Record<Backend, string>> = {}
  const missing = new Map<Backend, string>()
  for (const backend of backends) {
    const start = STARTS[backend]
    if (start === undefined) continue
    try {
      const server = await start()
      started.push(server)
      servers[backend] = server.url
    } catch (error) {
      missing.set(backend, error instanceof Error ? error.message : String(error))
    }
  }
  return {
    servers,
    missing,
    async stop() {
      for (const server of started.toReversed()) await server.stop()
    },
  }
}

async function startPostgres(): Promise<Started> {
  const given = process.env.MILLRACE_TEST_POSTGRES_URL
  if (given !== undefined) return { url: given, stop: async () => {} }
  const rig = await startRig({ require: 'available', only: ['postgres'] })
  const url = rig.env.MILLRACE_TEST_POSTGRES_18_URL
  if (url !== undefined) return { url, stop: () => rig.stop() }
  await rig.stop()
  throw new Error(rig.backends.find(({ available }) => !available)?.why)
}
