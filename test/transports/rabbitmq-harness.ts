import { connect as amqpConnect } from 'amqplib'
import type { BlobStore } from 'millrace/blobs'
import { DEFAULT_OWNER, type Harness } from 'millrace/conformance'
import { type RabbitmqSettings, rabbitmq } from 'millrace/rabbitmq'
import { memoryStore } from 'millrace/store'
import { claimCheck } from '../../src/layers/claim-check.ts'
import { layered } from '../../src/layers/layered.ts'
import { levelQueues } from '../../src/layers/levels.ts'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { read } from '../../src/model/probe.ts'
import type { QueueSpec, Transport } from '../../src/transport/transport.ts'
import type { MortalTop } from '../layers/bare-harness.ts'
import { fetched } from '../layers/fetched.ts'
import { learning } from '../layers/learning.ts'
import { mortalStore } from '../layers/mortal.ts'
import { laneQueues } from './rabbitmq-subjects.ts'

const { signal } = new AbortController()
const context = {
  signal,
  clock: systemClock(),
  random: Math.random,
  logger: silentLogger,
  migrate: 'auto',
} as const

export interface RabbitHarnessOptions {
  readonly url: string
  readonly queueType: 'quorum' | 'classic'
  /** With all layers that it calls for, on a store in memory. */
  readonly layers?: boolean
  /** How many levels of priority each queue names; with layers. */
  readonly levels?: number
  /** Queues in order, with so many lanes. */
  readonly lanes?: number
  /** Default: where there are no lanes the broker delays. */
  readonly delays?: boolean
  /** Where every body lies; with layers. */
  readonly blobs?: BlobStore
}

let harnesses = 0

function nameOf({ queueType, layers, levels, lanes, delays, blobs }: RabbitHarnessOptions): string {
  const kind = lanes === undefined ? queueType : 'lanes'
  return [
    `rabbitmq ${kind}${delays === false ? ', no delays' : ''}`,
    ...(layers ? ['store'] : []),
    ...(levels === undefined ? [] : [`${levels} levels`]),
    ...(blobs === undefined ? [] : ['claim check']),
  ].join(' + ')
}

/** Its queues are of its own and go away with it. */
export async function rabbitHarness(options: RabbitHarnessOptions): Promise<Harness> {
  const { url, queueType, layers = false, levels, lanes, blobs } = options
  const { delays = lanes === undefined } = options
  const kind = lanes === undefined ? queueType : 'lanes'
  harnesses += 1
  const prefix = `kit-${kind}-${harnesses}-${process.pid}-`
  const named = levels === undefined ? {} : { priorities: levels }
  const stores = memoryStore()
  const known = new Map<string, QueueSpec>()
  const settings: RabbitmqSettings = { queueType, prefix, ...(lanes && { lanes }) }
  const cuts = new WeakMap<Transport, () => void>()
  const onLayers = async (raw: Transport): Promise<MortalTop> => {
    const { thing: store, die } = mortalStore(await stores.connect(context))
    const below = layered(raw, { ...context, store, levels })
    const all = blobs ? fetched(claimCheck(below, { ...context, blobs, aboveBytes: 0 })) : below
    return { ...learning(all, known), die }
  }
  let isMade = false
  const connect = async (): Promise<Transport> => {
    const streams: unknown[] = []
    let isGone = false
    const openOne = async () => {
      if (isGone) throw new Error('this process is gone')
      const connection = await amqpConnect(url, { noDelay: true })
      streams.push(read(connection.connection, 'stream'))
      return connection
    }
    // The first connection makes every queue: to compare each of them again on each connection takes longer than the tests.
    const topology = isMade ? ('none' as const) : ('create' as const)
    isMade = true
    const how = { ...settings, connect: openOne, topology, delays }
    const plain = await rabbitmq(how).connect(context)
    const raw = lanes === undefined ? plain : (plain.ordered ?? plain)
    const transport: MortalTop = layers ? await onLayers(raw) : raw
    cuts.set(transport, () => {
      isGone = true
      transport.die?.()
      for (const stream of streams) {
        const end = read(stream, 'destroy')
        if (typeof end === 'function') end.call(stream, new Error('killed'))
      }
    })
    return transport
  }
  const first = await connect()
  return {
    name: nameOf(options),
    connect,
    async freshQueue({ maxDepth, owner = DEFAULT_OWNER, ageingMs } = {}) {
      const ageing = ageingMs === undefined ? {} : { ageingMs }
      const queue = { name: `queue ${known.size}`, owner, maxDepth, ...ageing, ...named }
      known.set(queue.name, queue)
      await first.topology.ensure([queue], signal)
      return queue.name
    },
    slow: 1,
    leaseMs: 500,
    vanish: async (transport) => cuts.get(transport)?.(),
    async dispose() {
      await first.close()
      const connection = await amqpConnect(url)
      const channel = await connection.createChannel()
      const placesOf = (name: string): readonly string[] =>
        lanes === undefined ? levelQueues(name, levels ?? 1) : laneQueues(name, lanes)
      const all = [...known.keys()].flatMap(placesOf)
      for (const name of all) await channel.deleteQueue(`${prefix}${name}`)
      await connection.close()
    },
  }
}
