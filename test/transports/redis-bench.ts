import assert from 'node:assert/strict'
import { after } from 'node:test'
import { createClient } from '@redis/client'
import { type RedisOptions, redis } from 'millrace/redis'
import { systemClock } from '../../src/model/clock.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { type Logger, silentLogger } from '../../src/model/logger.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { freshPrefix } from './redis-servers.ts'

export const signal: AbortSignal = new AbortController().signal

export interface RawClient {
  sendCommand(args: readonly string[]): Promise<unknown>
  destroy(): void
}

export interface Bench {
  readonly transport: Transport
  readonly prefix: string
  /** A client that looks at the keys themselves. */
  readonly raw: RawClient
  /** The key of the queue `q`. */
  key(name: string): string
  another(options?: Partial<RedisOptions>): Promise<Transport>
  dispose(): Promise<void>
}

const opened = new Set<Bench>()
/** A test that failed half way leaves connections that would keep its process alive. */
after(() => Promise.all([...opened].map((bench) => bench.dispose())))

export function connectTo(
  options: RedisOptions,
  logger: Logger = silentLogger,
): Promise<Transport> {
  return redis(options).connect({
    signal,
    clock: systemClock(),
    random: Math.random,
    logger,
    migrate: 'auto',
  })
}

/** A transport on keys of its own with the queue `q`. */
export async function open(
  url: string,
  options: Partial<RedisOptions> & { readonly maxDepth?: number } = {},
): Promise<Bench> {
  const { maxDepth, ...settings } = options
  const prefix = freshPrefix()
  const connect = (more: Partial<RedisOptions> = {}): Promise<Transport> =>
    connectTo({ url, prefix, ...settings, ...more } as RedisOptions)
  const transport = await connect()
  await transport.topology.ensure([{ name: 'q', owner: 'team', maxDepth }], signal)
  const raw = createClient({ url })
  raw.on('error', () => {})
  await raw.connect()
  const all = [transport]
  const bench: Bench = {
    transport,
    prefix,
    raw,
    key: (name) => `{${prefix}:q}:${name}`,
    async another(more) {
      const one = await connect(more)
      all.push(one)
      return one
    },
    async dispose() {
      if (!opened.delete(bench)) return
      await Promise.all(all.map((one) => one.close()))
      raw.destroy()
    },
  }
  opened.add(bench)
  return bench
}

export function envelope(id: string, more: Partial<Envelope> = {}): Envelope {
  return { id, body: new Uint8Array([1, 2, 3]), headers: {}, priority: 0, ...more }
}

export function subscribeTo(transport: Transport, leaseMs = 60_000): Promise<Subscription> {
  return transport.subscribe('q', { group: 'g', leaseMs, maxInFlight: 1_000 })
}

/** All that is ready now. */
export async function takeAll(from: Subscription, max = 100): Promise<readonly Delivery[]> {
  return await from.receive({ max, waitMs: 0, signal })
}

export function idsOf(all: readonly Delivery[]): readonly string[] {
  return all.map(({ envelope: { id } }) => id)
}

export async function ackAll(from: Subscription, all: readonly Delivery[]): Promise<void> {
  const outcomes = await from.settle(all.map((delivery) => ({ as: 'acked', delivery }) as const))
  assert.ok(outcomes.every(({ ok }) => ok))
}
