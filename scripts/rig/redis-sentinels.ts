import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ask, placeOf } from './ask.ts'
import { freePort, until } from './command.ts'
import { type PrivateServer, startServer } from './private-server.ts'
import { redisBinary } from './redis-binaries.ts'
import { type RedisServer, redisAnswers, startRedis } from './redis-server.ts'

/** A primary with one replica, watched by three sentinels. */
export interface RedisSentinels {
  /** How the sentinels name the primary. */
  readonly name: string
  /** The primary first. */
  readonly servers: readonly RedisServer[]
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
  /** Of the servers, and of the sentinels. */
  readonly password: string
  readonly sentinelPassword: string
  stop(): Promise<void>
}

const NAME = 'mymaster'
const HOST = '127.0.0.1'
const SENTINELS = 3
const PASSWORD = 'of-the-servers'
const SENTINEL_PASSWORD = 'of-the-sentinels'
/** After this long without an answer a sentinel takes the primary for dead. */
const DOWN_AFTER_MS = 1_000

/** @param more arguments of both servers */
export async function startRedisSentinels(more: readonly string[] = []): Promise<RedisSentinels> {
  const passwords = ['--requirepass', PASSWORD, '--masterauth', PASSWORD]
  const args = ['--repl-diskless-sync-delay', '0', ...passwords, ...more]
  const started: PrivateServer[] = []
  const stop = async (): Promise<void> => {
    await Promise.all(started.map((server) => server.stop()))
  }
  const keep = <S extends PrivateServer>(server: S): S => {
    started.push(server)
    return server
  }
  try {
    const primary = keep(await startRedis('redis 7', { args }))
    const following = ['--replicaof', HOST, String(primary.port)]
    const replica = keep(await startRedis('redis 7', { args: [...args, ...following] }))
    await until('the replica', 20_000, () =>
      says(replica.url, PASSWORD, 'INFO replication', /link_status:up/),
    )
    const ports: number[] = []
    for (let n = 0; n < SENTINELS; n++) {
      const port = await freePort()
      keep(await startSentinel(port, primary.port))
      ports.push(port)
    }
    const known = `SENTINEL MASTER ${NAME}`
    for (const port of ports) {
      await until('sentinels that know each other and the replica', 30_000, () =>
        says(
          `redis://${HOST}:${port}`,
          SENTINEL_PASSWORD,
          known,
          /num-slaves\s+\$1\s+1\s(?:.|\s)*num-other-sentinels\s+\$1\s+2\s/,
        ),
      )
    }
    const nodes = ports.map((port) => ({ host: HOST, port }))
    const passwordsOf = { password: PASSWORD, sentinelPassword: SENTINEL_PASSWORD }
    return { name: NAME, servers: [primary, replica], nodes, ...passwordsOf, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function startSentinel(port: number, primary: number): Promise<PrivateServer> {
  const { file } = await redisBinary('redis 7')
  const lines = [
    `port ${port}`,
    `bind ${HOST}`,
    `sentinel monitor ${NAME} ${HOST} ${primary} 2`,
    `sentinel auth-pass ${NAME} ${PASSWORD}`,
    `requirepass ${SENTINEL_PASSWORD}`,
    `sentinel sentinel-pass ${SENTINEL_PASSWORD}`,
    `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${NAME} 10000`,
  ]
  const config = (folder: string): string => join(folder, 'sentinel.conf')
  return await startServer({
    name: `redis sentinel on port ${port}`,
    file,
    prepare: (folder) => writeFileSync(config(folder), `${lines.join('\n')}\n`),
    args: (folder) => [config(folder), '--sentinel', '--dir', folder],
    answers: () => redisAnswers(`redis://${HOST}:${port}`),
  })
}

async function says(
  url: string,
  password: string,
  command: string,
  expected: RegExp,
): Promise<boolean> {
  const answer = await ask(placeOf(url, 6379), `AUTH ${password}\r\n${command}\r\n`, (bytes) =>
    expected.test(bytes.toString()),
  )
  return answer !== undefined && expected.test(answer.toString())
}
