import { freePort, until } from './command.ts'
import { type NatsServer, startNats } from './nats-server.ts'

/** Three nodes with JetStream, each with the name that the cluster knows it by. */
export interface NatsCluster {
  readonly nodes: readonly (NatsServer & { readonly name: string })[]
  readonly urls: readonly string[]
  stop(): Promise<void>
}

const NODES = ['one', 'two', 'three'] as const

export async function startNatsCluster(): Promise<NatsCluster> {
  const routes: string[] = []
  for (const _ of NODES) routes.push(`nats://127.0.0.1:${await freePort()}`)
  const watchPort = await freePort()
  const nodes: NatsCluster['nodes'][number][] = []
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.stop()))
  }
  try {
    for (const [at, name] of NODES.entries()) {
      const listen = routes[at]?.replace('nats://', '')
      const config = [
        `server_name: ${name}`,
        `cluster { name: rig, listen: "${listen}", routes: [${routes.join()}] }`,
        ...(at === 0 ? [`http: "127.0.0.1:${watchPort}"`] : []),
      ]
      nodes.push({ ...(await startNats({ config })), name })
    }
    await until('a leader of the NATS cluster', 60_000, () => hasLeader(watchPort))
    return { nodes, urls: nodes.map(({ url }) => url), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function hasLeader(port: number): Promise<boolean> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/jsz`, {
      signal: AbortSignal.timeout(1_000),
    })
    const said = await answer.text()
    return /"leader":\s*"\w+"/.test(said) && /"cluster_size":\s*3\b/.test(said)
  } catch {
    return false
  }
}
