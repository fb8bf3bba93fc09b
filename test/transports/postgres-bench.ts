import { after } from 'node:test'
import { postgres } from 'millrace/postgres'
import { systemClock } from '../../src/model/clock.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Logger } from '../../src/model/logger.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { PgAddress } from '../../src/sql/pg-open.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { dropSchema, freshSchema } from './postgres-servers.ts'

export const signal: AbortSignal = new AbortController().signal

export interface Bench {
  readonly transport: Transport
  readonly schema: string
  /** One more connection to the same schema. */
  another(url?: string): Promise<Transport>
  dispose(): Promise<void>
}

export interface BenchOptions {
  readonly queue?: string
  readonly address?: PgAddress
  readonly listen?: boolean
  readonly timeoutMs?: number
  readonly logger?: Logger
}

const opened = new Set<Bench>()
/** A test that failed half way leaves connections that would keep its process alive. */
after(() => Promise.all([...opened].map((bench) => bench.dispose())))

/** A transport on a schema of its own with one queue. */
export async function open(url: string, options: BenchOptions = {}): Promise<Bench> {
  const { queue = 'q', address = { url }, listen = true, timeoutMs = 30_000 } = options
  const schema = freshSchema()
  const connect = (to: PgAddress): Promise<Transport> =>
    postgres({ ...to, schema, listen, timeoutMs }).connect({
      signal,
      clock: systemClock(),
      random: Math.random,
      logger: options.logger ?? silentLogger,
      migrate: 'auto',
    })
  const transport = await connect(address)
  await transport.topology.ensure([{ name: queue, owner: 'team', maxDepth: undefined }], signal)
  const all = [transport]
  const bench: Bench = {
    transport,
    schema,
    async another(to = url) {
      const one = await connect({ url: to })
      all.push(one)
      return one
    },
    async dispose() {
      await Promise.all(all.map((one) => one.close()))
      opened.delete(bench)
      await dropSchema(url, schema)
    },
  }
  opened.add(bench)
  return bench
}

export function envelope(id: string, more: Partial<Envelope> = {}): Envelope {
  return { id, body: new Uint8Array([1, 2, 3]), headers: {}, priority: 0, ...more }
}

/** Receives up to `max` and keeps them for a minute. */
export async function take(
  transport: Transport,
  queue: string,
  max: number,
): Promise<readonly Delivery[]> {
  const subscription = await transport.subscribe(queue, {
    group: 'g',
    leaseMs: 60_000,
    maxInFlight: max,
  })
  return await subscription.receive({ max, waitMs: 5_000, signal })
}

export async function until(check: () => Promise<boolean>, timeoutMs = 20_000): Promise<void> {
  const endAt = Date.now() + timeoutMs
  while (!(await check())) {
    if (Date.now() > endAt)
      throw new Error(`the condition did not come true within ${timeoutMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
