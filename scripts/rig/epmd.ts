import { ask } from './ask.ts'
import { freePort, which } from './command.ts'
import { type PrivateServer, startServer } from './private-server.ts'

/** Erlang's port mapper. A private one, or a node would start or use the one of the whole machine. */
export interface Epmd extends PrivateServer {
  readonly port: number
}

const NAMES_REQUEST = Uint8Array.of(0, 1, 110)

export async function startEpmd(): Promise<Epmd> {
  const file = await which('epmd', ['/usr/bin'])
  if (file === undefined) throw new Error('epmd is not on PATH')
  const port = await freePort()
  const server = await startServer({
    name: `epmd on port ${port}`,
    file,
    args: () => ['-address', '127.0.0.1', '-port', String(port)],
    answers: async () => {
      const answer = await ask(
        { host: '127.0.0.1', port },
        NAMES_REQUEST,
        (said) => said.length >= 4,
      )
      return answer?.readUInt32BE() === port
    },
  })
  return { ...server, port }
}
