import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, run } from './command.ts'
import { type Epmd, startEpmd } from './epmd.ts'
import { type PrivateServer, startServer } from './private-server.ts'
import { managementVersion } from './rabbitmq-management.ts'
import { type NodePlace, type NodeSettings, nodeEnv, prepareNode } from './rabbitmq-node.ts'

/** A private RabbitMQ node with its management plugin. Fault tests start their own, so that they may break it. */
export interface RabbitmqServer extends PrivateServer {
  readonly url: string
  readonly port: number
  readonly managementUrl: string
  readonly version: string
  readonly place: NodePlace
  /** Runs `rabbitmqctl` against the node. */
  ctl(...args: readonly string[]): Promise<string>
}

export interface RabbitmqOptions extends NodeSettings {
  /** A node whose cluster the new one joins. It has to be stopped last: the others find each other through it. */
  readonly join?: RabbitmqServer
}

/** Not the ones on PATH: those want to be root, and know only the node of the whole machine. */
const PROGRAMS = '/usr/lib/rabbitmq/bin'
const READY_MS = 120_000

export const RABBITMQ_COMMAND = 'apt-get install --no-install-recommends rabbitmq-server'

export async function startRabbitmq(options: RabbitmqOptions = {}): Promise<RabbitmqServer> {
  const { join: first, ...settings } = options
  if (!existsSync(join(PROGRAMS, 'rabbitmq-server'))) {
    throw new Error(`there is no rabbitmq-server in ${PROGRAMS}`)
  }
  const epmd = first === undefined ? await startEpmd() : undefined
  try {
    const place = await newPlace(first?.place, epmd)
    const node = await startNode(place, settings, epmd)
    if (first !== undefined) await joinCluster(node, first.place.node)
    return node
  } catch (error) {
    await epmd?.stop()
    throw error
  }
}

async function newPlace(first: NodePlace | undefined, epmd: Epmd | undefined): Promise<NodePlace> {
  const port = await freePort()
  return {
    node: `rig-${port}@localhost`,
    port,
    managementPort: await freePort(),
    distributionPort: await freePort(),
    epmdPort: first?.epmdPort ?? epmd?.port ?? 0,
    cookie: first?.cookie ?? randomBytes(16).toString('hex').toUpperCase(),
  }
}

async function startNode(
  place: NodePlace,
  settings: NodeSettings,
  epmd: Epmd | undefined,
): Promise<RabbitmqServer> {
  const managementUrl = `http://guest:guest@127.0.0.1:${place.managementPort}`
  const server = await startServer({
    name: `rabbitmq on port ${place.port}`,
    file: join(PROGRAMS, 'rabbitmq-server'),
    args: () => [],
    env: (folder) => nodeEnv(place, folder),
    prepare: (folder) => prepareNode(place, folder, settings),
    // It opens this port last.
    answers: async () => (await managementVersion(managementUrl, place.port)) !== undefined,
    readyMs: READY_MS,
  })
  return {
    ...server,
    place,
    port: place.port,
    url: `amqp://guest:guest@127.0.0.1:${place.port}`,
    managementUrl,
    version: (await managementVersion(managementUrl)) ?? 'of an unknown version',
    ctl: (...args) =>
      run(join(PROGRAMS, 'rabbitmqctl'), ['-n', place.node, ...args], {
        env: nodeEnv(place, server.folder),
      }),
    stop: () => server.stop().finally(() => epmd?.stop()),
  }
}

async function joinCluster(server: RabbitmqServer, node: string): Promise<void> {
  try {
    // A node that answers may still be booting, and would start its app after it was stopped.
    for (const step of [['await_startup'], ['stop_app'], ['join_cluster', node], ['start_app']]) {
      await server.ctl(...step)
    }
  } catch (error) {
    await server.stop()
    throw error
  }
}
