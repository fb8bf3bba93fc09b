import { ask, placeOf } from './ask.ts'
import type { Backend } from './backend.ts'
import { freePort, run, until, which } from './command.ts'
import { REDIS_COMMAND } from './redis-binaries.ts'
import { type RedisServer, startRedis } from './redis-server.ts'

/** Redis 7 in cluster mode: masters without replicas, with all slots spread over them. */
export interface RedisCluster {
  readonly urls: readonly string[]
  readonly nodes: readonly RedisServer[]
  readonly version: string
  stop(): Promise<void>
}

const MASTERS = 3

export async function startRedisCluster(): Promise<RedisCluster> {
  const nodes: RedisServer[] = []
  const stop = async (): Promise<void> => void (await Promise.all(nodes.map((node) => node.stop())))
  try {
    for (let n = 0; n < MASTERS; n++) nodes.push(await startNode())
    await join(nodes)
    const urls = nodes.map(({ url }) => url)
    await until('a redis cluster with all slots', 20_000, () => clusterAnswers(urls.join(',')))
    return { urls, nodes, version: nodes[0]?.version ?? '', stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function startNode(): Promise<RedisServer> {
  const bus = ['--cluster-port', String(await freePort())]
  return await startRedis('redis 7', { args: ['--cluster-enabled', 'yes', ...bus] })
}

async function join(nodes: readonly RedisServer[]): Promise<void> {
  const client = await which('redis-cli', ['/usr/bin', '/usr/local/bin'])
  if (client === undefined) throw new Error('redis-cli is not on PATH')
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`)
  await run(client, ['--cluster', 'create', ...addresses, '--cluster-yes'])
}

/** Whether every one of them, separated by commas, knows who has each slot. */
export async function clusterAnswers(urls: string): Promise<boolean> {
  const known = await Promise.all(urls.split(',').map(isComplete))
  return known.every((complete) => complete)
}

async function isComplete(url: string): Promise<boolean> {
  const answer = await ask(placeOf(url, 6379), 'CLUSTER INFO\r\n', (bytes) =>
    /cluster_known_nodes|^-/.test(bytes.toString()),
  )
  return answer?.includes('cluster_state:ok') ?? false
}

const VARIABLE = 'MILLRACE_TEST_REDIS_CLUSTER_URLS'

export const REDIS_CLUSTER_BACKEND: Backend = {
  name: 'redis cluster',
  family: 'redis',
  variable: VARIABLE,
  command: REDIS_COMMAND,
  answers: clusterAnswers,
  start: async () => {
    const { urls, version, stop } = await startRedisCluster()
    return { env: { [VARIABLE]: urls.join(',') }, version, stop }
  },
}
