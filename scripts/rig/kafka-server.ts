import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Backend } from './backend.ts'
import { freePort, run, until } from './command.ts'
import { archivedClasses } from './java-archive.ts'
import { kafkaAnswers, knownBrokers } from './kafka-ask.ts'
import { type KafkaNode, kafkaConfig } from './kafka-config.ts'
import { JAVA_COMMAND, type JavaProgram, javaProgram } from './maven.ts'
import { type PrivateServer, startServer } from './private-server.ts'

/** A broker that is its own controller. Fault tests start their own, so that they may break it. */
export interface KafkaServer extends PrivateServer {
  readonly id: number
  readonly port: number
  /** `host:port`. */
  readonly broker: string
}

export interface Kafka {
  readonly nodes: readonly KafkaServer[]
  /** All of them, for a client. */
  readonly brokers: readonly string[]
  readonly version: string
  stop(): Promise<void>
}

export interface KafkaOptions {
  /** Default 1. With 3, each record has three copies, two of them needed for a confirmation. */
  readonly nodes?: number
  /** More lines of server.properties, of each node its own where it is a function; a later line wins. */
  readonly config?:
    | readonly string[]
    | ((node: KafkaNode) => readonly string[] | Promise<readonly string[]>)
}

const JVM = ['-Xms64m', '-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']
const LOG = ['-Dorg.slf4j.simpleLogger.defaultLogLevel=warn']
const CLUSTER_ID = 'millrace-rig-cluster-1'
const READY_MS = 120_000
/** Writing the archive is what takes long. */
const ARCHIVE_MS = 120_000

export async function startKafka(options: KafkaOptions = {}): Promise<Kafka> {
  const program = await kafkaProgram()
  const places = await Promise.all(
    Array.from({ length: options.nodes ?? 1 }, (_, n) => newPlace(n + 1)),
  )
  const { config = [] } = options
  const start = async (place: KafkaNode): Promise<KafkaServer> => {
    const more = typeof config === 'function' ? await config(place) : config
    return startNode(program, place, places, more)
  }
  const settled = await Promise.allSettled(places.map(start))
  const nodes = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.stop()))
  }
  try {
    for (const one of settled) if (one.status === 'rejected') throw one.reason
    await Promise.all(nodes.map(({ broker }) => complete(broker, nodes.length)))
  } catch (error) {
    await stop()
    throw error
  }
  return { nodes, brokers: nodes.map(({ broker }) => broker), version: program.version, stop }
}

interface KafkaProgram extends JavaProgram {
  readonly jvm: readonly string[]
  /** Of the broker alone. */
  readonly recording: readonly string[]
}

async function kafkaProgram(): Promise<KafkaProgram> {
  const program = await javaProgram('kafka-4.4.0', 'kafka_2.13')
  const archive = await archivedClasses(program.java, 'kafka-4.4.0', async (options) => {
    const place = await newPlace(1)
    const recorded = await startNode(
      { ...program, jvm: JVM, recording: options },
      place,
      [place],
      [],
    )
    await recorded.halt('clean', ARCHIVE_MS)
    await recorded.stop()
  })
  return { ...program, jvm: [...JVM, ...archive], recording: [] }
}

async function complete(broker: string, count: number): Promise<void> {
  const what = `kafka at ${broker} knowing ${count} brokers`
  await until(what, READY_MS, async () => (await knownBrokers(broker)) === count)
}

async function newPlace(id: number): Promise<KafkaNode> {
  return { id, port: await freePort(), controllerPort: await freePort() }
}

async function startNode(
  { java, classPath, jvm, recording }: KafkaProgram,
  place: KafkaNode,
  places: readonly KafkaNode[],
  more: readonly string[],
): Promise<KafkaServer> {
  const configIn = (folder: string): string => join(folder, 'server.properties')
  const broker = `127.0.0.1:${place.port}`
  const server = await startServer({
    name: `kafka on port ${place.port}`,
    file: java,
    prepare: async (folder) => {
      const config = kafkaConfig(place, places, join(folder, 'data'), more)
      writeFileSync(configIn(folder), config)
      const format = ['kafka.tools.StorageTool', 'format', '-t', CLUSTER_ID, '-c', configIn(folder)]
      await run(java, [...jvm, ...LOG, '-cp', classPath, ...format])
    },
    args: (folder) => [
      ...jvm,
      ...recording,
      ...LOG,
      '-cp',
      classPath,
      'kafka.Kafka',
      configIn(folder),
    ],
    answers: () => kafkaAnswers(broker),
    readyMs: READY_MS,
  })
  return { ...server, id: place.id, port: place.port, broker }
}

const VARIABLE = 'MILLRACE_TEST_KAFKA_BROKERS'

export const KAFKA_BACKEND: Backend = {
  name: 'kafka',
  family: 'kafka',
  variable: VARIABLE,
  command: JAVA_COMMAND,
  answers: async (brokers) => {
    const each = await Promise.all(brokers.split(',').map(kafkaAnswers))
    return each.some((alive) => alive)
  },
  start: async () => {
    const { brokers, version, stop } = await startKafka()
    return { env: { [VARIABLE]: brokers.join(',') }, version, stop }
  },
}
