import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ask, placeOf } from './ask.ts'
import type { Backend } from './backend.ts'
import { freePort } from './command.ts'
import { canSyncAlways, NATS_COMMAND, type NatsBinary, natsBinary } from './nats-binaries.ts'
import { type PrivateServer, startServer } from './private-server.ts'

/** A private NATS server with JetStream. Fault tests start their own, so that they may break it. */
export interface NatsServer extends PrivateServer {
  readonly url: string
  readonly port: number
  readonly version: string
}

export interface NatsOptions {
  /** More lines of its configuration: `['max_payload: 64KB']`. */
  readonly config?: readonly string[]
  /** Default `always`: what is confirmed survives a crash of the machine. `2m` is the server's own default. */
  readonly syncInterval?: string
}

export async function startNats(options: NatsOptions = {}): Promise<NatsServer> {
  const binary = await natsBinary()
  const port = await freePort()
  const url = `nats://127.0.0.1:${port}`
  const server = await startServer({
    name: `nats on port ${port}`,
    file: binary.file,
    prepare: (folder) => writeFileSync(configIn(folder), config(folder, port, binary, options)),
    args: (folder) => ['--config', configIn(folder)],
    answers: () => natsAnswers(url),
  })
  return { ...server, url, port, version: binary.version }
}

const configIn = (folder: string): string => join(folder, 'nats.conf')

function config(folder: string, port: number, binary: NatsBinary, options: NatsOptions): string {
  const { config: more = [], syncInterval = 'always' } = options
  const sync = canSyncAlways(binary) ? `sync_interval: ${syncInterval}` : ''
  const lines = [
    `listen: 127.0.0.1:${port}`,
    `jetstream { store_dir: ${JSON.stringify(join(folder, 'jetstream'))}, ${sync} }`,
    ...more,
  ]
  return `${lines.join('\n')}\n`
}

/** The server speaks first; one that asks for a password or for TLS is alive, too. */
const ANSWERS = /PONG|-ERR|"tls_required":true/

export async function natsAnswers(url: string): Promise<boolean> {
  const said = 'CONNECT {"verbose":false}\r\nPING\r\n'
  const answer = await ask(placeOf(url, 4222), said, (bytes) => ANSWERS.test(bytes.toString()))
  return answer !== undefined
}

const VARIABLE = 'MILLRACE_TEST_NATS_URL'

export const NATS_BACKEND: Backend = {
  name: 'nats',
  family: 'nats',
  variable: VARIABLE,
  command: NATS_COMMAND,
  answers: natsAnswers,
  start: async () => {
    const { url, version, stop } = await startNats()
    return { env: { [VARIABLE]: url }, version, stop }
  },
}
