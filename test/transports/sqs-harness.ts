import { DEFAULT_OWNER, type Harness } from 'millrace/conformance'
import { type SqsOptions, sqs } from 'millrace/sqs'
import { memoryStore, type StoreConnector } from 'millrace/store'
import { layered } from '../../src/layers/layered.ts'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type {
  ConnectContext,
  Connector,
  QueueSpec,
  Transport,
} from '../../src/transport/transport.ts'
import type { MortalTop } from '../layers/bare-harness.ts'
import { learning } from '../layers/learning.ts'
import { mortal, mortalStore } from '../layers/mortal.ts'
import type { SqsServer } from './sqs-servers.ts'

const { signal } = new AbortController()
const context: ConnectContext = {
  signal,
  clock: systemClock(),
  random: Math.random,
  logger: silentLogger,
  migrate: 'auto',
}
const run = Math.floor(Math.random() * 2 ** 40).toString(36)
let queues = 0

/** A name that nobody used before, on servers that live longer than one run. */
export function freshName(): string {
  queues += 1
  return `q-${run}-${queues}`
}

export const account: Pick<SqsOptions, 'region' | 'credentials'> = {
  region: 'us-east-1',
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
}

export function open(connector: Connector): Promise<Transport> {
  return connector.connect(context)
}

export interface SqsHarnessOptions {
  readonly server: SqsServer
  readonly kind: 'standard' | 'fifo'
  /** With every layer on top that the traits call for, on a store that all connections share. */
  readonly isLayered: boolean
  /** How many levels of priority each queue names; with layers. */
  readonly levels?: number
}

export async function sqsHarness(options: SqsHarnessOptions): Promise<Harness> {
  const { server, kind, isLayered, levels } = options
  const named = levels === undefined ? {} : { priorities: levels }
  const shared = isLayered ? memoryStore() : undefined
  const tops = new Set<MortalTop>()
  const known = new Map<string, QueueSpec>()
  const connect = async (topology: 'create' | 'none' = 'none'): Promise<Transport> => {
    const settings = { ...account, endpoint: server.url, kind, timeoutMs: 10_000, topology }
    const raw = await open(sqs(settings))
    const one = shared === undefined ? raw : learning(await withStore(raw, shared, levels), known)
    tops.add(one)
    return one
  }
  const first = await connect('create')
  return {
    name: `sqs ${kind} (${server.name})${isLayered ? ' + layers on a memory store' : ''}${levels === undefined ? '' : ` + ${levels} levels`}`,
    connect: () => connect(),
    async freshQueue({ maxDepth, owner = DEFAULT_OWNER, ageingMs } = {}) {
      const ageing = ageingMs === undefined ? {} : { ageingMs }
      const spec = { name: freshName(), owner, maxDepth, ...ageing, ...named }
      known.set(spec.name, spec)
      await first.topology.ensure([spec], signal)
      return spec.name
    },
    slow: 1,
    // SQS counts in whole seconds. A copy takes three calls, and doubles when the lease ends between them.
    leaseMs: isLayered ? 3_000 : 1_000,
    vanish: async (transport) => {
      for (const one of tops) if (one === transport) one.die?.()
    },
    dispose: () => first.close(),
  }
}

async function withStore(
  raw: Transport,
  shared: StoreConnector,
  levels: number | undefined,
): Promise<MortalTop> {
  const { thing: store, die } = mortalStore(await shared.connect(context))
  const { clock, random, logger } = context
  const broker = mortal(raw)
  const top = layered(broker.thing, { store, clock, random, logger, levels })
  return {
    ...top,
    die: () => {
      broker.die()
      die()
    },
    close: () => top.close().then(() => store.close()),
  }
}
