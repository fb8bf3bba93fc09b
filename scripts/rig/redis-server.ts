import { ask, placeOf } from './ask.ts'
import { freePort } from './command.ts'
import { type PrivateServer, startServer } from './private-server.ts'
import { type RedisKind, redisBinary } from './redis-binaries.ts'

/** A private Redis or Valkey. Fault tests start their own, so that they may break it. */
export interface RedisServer extends PrivateServer {
  readonly url: string
  readonly port: number
  readonly version: string
}

export interface RedisOptions {
  /** More arguments; a later one wins: `['--appendfsync', 'everysec']`. */
  readonly args?: readonly string[]
}

/** What is confirmed survives a crash of the server, and nothing is evicted. */
const DURABLE = [
  ...['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''],
  ...['--maxmemory-policy', 'noeviction'],
]

export async function startRedis(
  kind: RedisKind,
  options: RedisOptions = {},
): Promise<RedisServer> {
  const { file, version } = await redisBinary(kind)
  const port = await freePort()
  const url = `redis://127.0.0.1:${port}`
  const settings = ['--port', String(port), '--bind', '127.0.0.1', ...DURABLE]
  const server = await startServer({
    name: `redis on port ${port}`,
    file,
    args: (folder) => [...settings, '--dir', folder, ...(options.args ?? [])],
    answers: () => redisAnswers(url),
  })
  return { ...server, url, port, version }
}

/** One that asks for a password is alive, too; one that still reads its files is not. */
export async function redisAnswers(url: string): Promise<boolean> {
  const answer = await ask(placeOf(url, 6379), 'PING\r\n', (bytes) => bytes.includes('\r\n'))
  return answer !== undefined && /^(?:\+PONG|-NOAUTH)/.test(answer.toString())
}
