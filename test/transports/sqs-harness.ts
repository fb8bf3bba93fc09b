import { DEFAULT_OWNER, type Harness } from 'millrace/conformance'
import { type SqsOptions, sqs } from 'millrace/sqs'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Connector, Transport } from '../../src/transport/transport.ts'
import type { SqsServer } from './sqs-servers.ts'

const { signal } = new AbortController()
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
  return connector.connect({
    signal,
    clock: systemClock(),
    random: Math.random,
    logger: silentLogger,
    migrate: 'auto',
  })
}

export async function sqsHarness(server: SqsServer, kind: 'standard' | 'fifo'): Promise<Harness> {
  const connect = (): Promise<Transport> =>
    open(sqs({ ...account, endpoint: server.url, kind, timeoutMs: 10_000 }))
  const first = await connect()
  return {
    name: `${server.name}, ${kind}`,
    connect,
    async freshQueue({ maxDepth, owner = DEFAULT_OWNER } = {}) {
      const name = freshName()
      await first.topology.ensure([{ name, owner, maxDepth }], signal)
      return name
    },
    slow: 1,
    // SQS counts in whole seconds.
    leaseMs: 1_000,
    dispose: () => first.close(),
  }
}
