import { jetstreamManager } from '@nats-io/jetstream'
import { connect as dial, type NatsConnection } from '@nats-io/transport-node'
import { DEFAULT_OWNER, type Harness } from 'millrace/conformance'
import { type NatsSettings, nats } from 'millrace/nats'
import { memoryStore } from 'millrace/store'
import { layered } from '../../src/layers/layered.ts'
import { type Clock, systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Connector, QueueSpec, Transport } from '../../src/transport/transport.ts'
import { learning } from '../layers/learning.ts'
import { mortalStore } from '../layers/mortal.ts'

/** A thousand messages are settled within it also on a machine that is busy with something else. */
const LEASE_MS = 2_000

let made = 0

/** What nobody else's streams begin with. */
export function freshPrefix(): string {
  made += 1
  return `t${process.pid}-${made}-${Math.floor(Math.random() * 2 ** 32).toString(36)}`
}

const context = {
  signal: new AbortController().signal,
  clock: systemClock(),
  random: Math.random,
  logger: silentLogger,
  migrate: 'auto',
} as const

export function connecting(connector: Connector, clock: Clock = context.clock): Promise<Transport> {
  return connector.connect({ ...context, clock })
}

export interface NatsHarnessOptions extends NatsSettings {
  /** With all that a store brings on top, as an app would have it. */
  readonly withStore?: boolean
  /** How many levels of priority each queue names. */
  readonly levels?: number
}

function nameOf({ lanes, schedules }: NatsSettings): string {
  return `${lanes === undefined ? '' : ', lanes'}${schedules === false ? ', no schedules' : ''}`
}

/** Every connection is the test's own, so that it can vanish: closed under us, with messages in hand. */
export async function natsHarness(
  servers: string,
  { withStore = false, levels, ...settings }: NatsHarnessOptions = {},
): Promise<Harness> {
  const prefix = freshPrefix()
  const stores = withStore ? memoryStore() : undefined
  const connections = new Map<Transport, NatsConnection>()
  const deaths = new WeakMap<Transport, () => void>()
  const known = new Map<string, QueueSpec>()
  const connect = async (): Promise<Transport> => {
    const connection = await dial({ servers })
    const raw = await connecting(nats({ connection, prefix, ackWaitMs: LEASE_MS, ...settings }))
    const mortal = stores && mortalStore(await stores.connect(context))
    const top = layered(raw, { ...context, store: mortal?.thing, levels })
    const transport = withStore ? learning(top, known) : top
    connections.set(transport, connection)
    if (mortal !== undefined) deaths.set(transport, mortal.die)
    return transport
  }
  const first = await connect()
  const version = connections.get(first)?.info?.version
  const named = levels === undefined ? {} : { priorities: levels }
  return {
    name: `nats ${version}${nameOf(settings)}${withStore ? ' with a store' : ''}${levels === undefined ? '' : ` and ${levels} levels`}`,
    connect,
    async freshQueue({ maxDepth, owner = DEFAULT_OWNER, ageingMs } = {}) {
      const ageing = ageingMs === undefined ? {} : { ageingMs }
      const ordered = settings.lanes === undefined ? {} : ({ ordered: true } as const)
      const spec = { name: `queue ${known.size + 1}`, owner, maxDepth, ...ordered }
      const queue = { ...spec, ...ageing, ...named }
      known.set(queue.name, queue)
      await first.topology.ensure([queue], context.signal)
      return queue.name
    },
    slow: 1,
    leaseMs: LEASE_MS,
    async vanish(transport) {
      deaths.get(transport)?.()
      await connections.get(transport)?.close()
    },
    async dispose() {
      await first.close()
      await removeStreams(servers, prefix)
      await Promise.all([...connections.values()].map((connection) => connection.close()))
    },
  }
}

/** A cluster that lost a node a moment ago may be without a leader of its metadata for longer than one answer is waited for. */
const REMOVALS_MAX = 5

export async function removeStreams(servers: string | string[], prefix: string): Promise<void> {
  for (let left = REMOVALS_MAX; ; left -= 1) {
    const connection = await dial({ servers })
    try {
      const { streams } = await jetstreamManager(connection)
      for await (const name of streams.names()) {
        if (name.startsWith(`${prefix}-`)) await streams.delete(name)
      }
      return
    } catch (error) {
      if (left === 0) throw error
    } finally {
      await connection.close()
    }
  }
}
