import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startRedis } from '../../scripts/rig/redis-server.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { envelope, open, signal, subscribeTo } from '../transports/redis-bench.ts'
import { NO_REDIS, redisServers } from '../transports/redis-servers.ts'
import { until } from '../transports/until.ts'
import { tcpProxy } from './tcp-proxy.ts'

/** The server is killed, so it is a private one. */
const available = redisServers().some(({ name }) => name === 'redis 7')
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f']
const EACH = 120
const PAUSE_MS = 20

describe('order by key on a redis server that fails', {
  skip: available ? false : NO_REDIS,
}, () => {
  test('Killed again and again under load, it hands out of each key the same one again or the next one, until all are acked.', async () => {
    const server = await startRedis('redis 7')
    try {
      await inOrderDespite(server.url, () => server.restart('crash'))
    } finally {
      await server.stop()
    }
  })
  test('So it does when connections are cut.', async () => {
    const server = await startRedis('redis 7')
    const proxy = await tcpProxy(server.port)
    try {
      await inOrderDespite(`redis://127.0.0.1:${proxy.port}`, async () => proxy.cut())
    } finally {
      await proxy.close()
      await server.stop()
    }
  })
})

interface Run {
  readonly transport: Transport
  /** Of each key the last one that was handed out. */
  readonly last: Map<string, number>
  /** Of each key the last one whose ack was on its way. */
  readonly acking: Map<string, number>
  readonly outOfOrder: string[]
}

async function inOrderDespite(url: string, disturb: () => Promise<void>): Promise<void> {
  const bench = await open(url)
  const { transport } = bench
  const none = KEYS.map((key) => [key, 0] as const)
  const run: Run = { transport, last: new Map(none), acking: new Map(none), outOfOrder: [] }
  const stop = new AbortController()
  const handed = (): number => [...run.last.values()].reduce((sum, number) => sum + number, 0)
  const all = KEYS.length * EACH
  const running = [
    ...KEYS.map((key) => sendAll(transport, key, stop.signal)),
    ...[0, 1, 2].map(() => work(run, stop.signal)),
  ]
  try {
    for (const share of [0.2, 0.4, 0.6, 0.8]) {
      await until(`${share} of all`, () => handed() >= share * all, 60_000)
      await disturb()
    }
    await until('all', () => handed() === all, 60_000)
    await until('nothing is left', async () => {
      const gauge = await transport.browse?.gauge('q').catch(() => undefined)
      return gauge?.depth === 0 && gauge.inFlight === 0
    })
  } finally {
    stop.abort()
    await Promise.all(running)
    await bench.dispose()
  }
  assert.deepEqual(run.outOfOrder, [])
}

/** The next one once the last is confirmed; one whose fate is unknown is sent again. */
async function sendAll(transport: Transport, key: string, stop: AbortSignal): Promise<void> {
  for (let n = 1; n <= EACH && !stop.aborted; ) {
    const message = envelope(`${key}-${n}`, { orderingKey: key })
    const [sent] = await transport.send('q', [message], { signal }).catch(() => [])
    if (sent?.ok) n += 1
    else await sleep(PAUSE_MS)
  }
}

function placeOf({ id }: Envelope): { readonly key: string; readonly number: number } {
  const [key = '', number = ''] = id.split('-')
  return { key, number: Number(number) }
}

async function work(
  { transport, last, acking, outOfOrder }: Run,
  stop: AbortSignal,
): Promise<void> {
  const from = await subscribeTo(transport, 2_000)
  while (!stop.aborted) {
    const options = { max: 4, waitMs: 200, signal: stop }
    const batch = await from.receive(options).catch(() => sleep(PAUSE_MS, []))
    for (const { envelope: one } of batch) {
      const { key, number } = placeOf(one)
      const before = last.get(key) ?? 0
      const isNext = number === before + 1 && acking.get(key) === before
      if (number !== before && !isNext) outOfOrder.push(one.id)
      last.set(key, number)
    }
    // Senders get ahead meanwhile, so that there is something to overtake.
    if (batch.length > 0) await sleep(PAUSE_MS)
    for (const { envelope: one } of batch) acking.set(placeOf(one).key, placeOf(one).number)
    const acts = batch.map((delivery) => ({ as: 'acked', delivery }) as const)
    for (let unknown = acts.length > 0; unknown; ) {
      unknown = await from.settle(acts).then(
        () => false,
        () => sleep(PAUSE_MS, !stop.aborted),
      )
    }
  }
  await from.close().catch(() => undefined)
}
