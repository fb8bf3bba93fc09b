import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RedisServer, startRedis } from '../../scripts/rig/redis-server.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { connectTo, envelope, open, signal, subscribeTo } from '../transports/redis-bench.ts'
import { NO_REDIS, redisServers } from '../transports/redis-servers.ts'
import { until } from '../transports/until.ts'
import { produce, work } from './load.ts'
import { type TcpProxy, tcpProxy } from './tcp-proxy.ts'

/** These break the server, so it is a private one. */
const available = redisServers().some(({ name }) => name === 'redis 7')

describe('a redis server that fails', { skip: available ? false : NO_REDIS }, () => {
  let server: RedisServer
  before(async () => {
    server = await startRedis('redis 7')
  })
  after(() => server.stop())

  for (const how of ['clean', 'crash'] as const) {
    const title = `restarted (${how}) under load: what was confirmed is there, and work goes on by itself`
    test(title, (t) => underLoad(t, server.url, () => server.restart(how)))
  }
  test('connections that are cut under load lose nothing', async (t) => {
    const proxy = await tcpProxy(server.port)
    await underLoad(t, throughProxy(proxy), async () => proxy.cut())
    await proxy.close()
  })
  test('a frozen server does not hold a close for long', () => closeWhileFrozen(server))
  test('nor a close, or what was begun, that comes while it begins to listen', () =>
    closeWhileListening(server))
  test('who begins to listen to a frozen server is not held up, and hears once it goes on', () =>
    listenWhileFrozen(server))
  test('who may not listen, and is told so late, says so and looks more often', (t) =>
    refusedLate(t, server))
  test('connecting to a frozen server ends at its limit', () => connectWhileFrozen(server))
  test('a call to a frozen server ends at its limit, its outcome is unknown, and the same id is stored once', () =>
    callWhileFrozen(server))
  test('a claim whose answer was lost is given back uncounted, long before its lease ends', () =>
    lostAnswer(server, [{}]))
  test('so is what it took of several levels of priority', () =>
    lostAnswer(server, [{ priority: 7 }, {}]))
  test('so is what it took of fair keys', () =>
    lostAnswer(server, [{ fairKey: 'a' }, { fairKey: 'b' }]))
  test('a listening connection that died without a word is replaced', () =>
    listenInABlackHole(server))
})

function throughProxy(proxy: TcpProxy): string {
  return `redis://127.0.0.1:${proxy.port}`
}

async function underLoad(t: TestContext, url: string, disturb: () => Promise<void>): Promise<void> {
  const bench = await open(url)
  const { transport } = bench
  const stop = new AbortController()
  const confirmed = new Set<string>()
  const done = new Set<string>()
  const producers = [0, 1, 2].map((n) => produce(transport, `p${n}`, confirmed, stop.signal))
  const workers = [0, 1].map(() => work(transport, done, stop.signal))
  await until('200 messages', () => done.size > 200)
  await disturb()
  const backAt = performance.now()
  const [seen, worked] = [confirmed.size, done.size]
  await until('a send', () => confirmed.size > seen)
  const sendsMs = Math.round(performance.now() - backAt)
  await until('work', () => done.size > worked)
  const workMs = Math.round(performance.now() - backAt)
  t.diagnostic(`sends go on after ${sendsMs} ms, work after ${workMs} ms`)
  await until('200 more', () => confirmed.size > seen + 200)
  stop.abort()
  await Promise.all([...producers, ...workers])
  const everything = (): boolean => [...confirmed].every((id) => done.has(id))
  await work(transport, done, AbortSignal.timeout(20_000), everything)
  const missing = [...confirmed].filter((id) => !done.has(id))
  assert.deepEqual(missing, [])
  await bench.dispose()
}

async function closeWhileFrozen(server: RedisServer): Promise<void> {
  const bench = await open(server.url)
  const subscription = await subscribeTo(bench.transport, 5_000)
  await bench.transport.send('q', [envelope('a')], { signal })
  await subscription.receive({ max: 1, waitMs: 1_000, signal })
  const waiting = subscription.receive({ max: 1, waitMs: 60_000, signal }).catch(() => [])
  server.freeze()
  try {
    const sending = bench.transport.send('q', [envelope('b')], { signal })
    const rejected = assert.rejects(sending)
    const closed = bench.transport.close().then(() => 'closed')
    assert.equal(await Promise.race([closed, sleep(8_000, 'still open', { ref: false })]), 'closed')
    await rejected
    assert.deepEqual(await waiting, [])
  } finally {
    server.thaw()
  }
  await bench.dispose()
}

async function closeWhileListening(server: RedisServer): Promise<void> {
  const bench = await open(server.url)
  server.freeze()
  try {
    const subscribing = Promise.allSettled([subscribeTo(bench.transport, 5_000)])
    await sleep(50)
    const ended = Promise.all([bench.transport.close(), subscribing]).then(() => 'ended')
    // Less than what a listening that was not called off would take.
    assert.equal(await Promise.race([ended, sleep(4_000, 'goes on', { ref: false })]), 'ended')
  } finally {
    server.thaw()
  }
  await bench.dispose()
}

async function listenWhileFrozen(server: RedisServer): Promise<void> {
  const bench = await open(server.url, { pollMs: 60_000 })
  server.freeze()
  const subscribing = subscribeTo(bench.transport, 5_000)
  const begun = await Promise.race([subscribing, sleep(15_000, undefined, { ref: false })])
  // A sign of life is asked for after 10 s, and 5 s later the connection is given up: what it would have listened to is the next one's.
  await sleep(17_000)
  server.thaw()
  assert.ok(begun !== undefined, 'it is held up')
  const received = begun.receive({ max: 1, waitMs: 50_000, signal })
  const other = await bench.another()
  await until('it listens', async () => {
    const listeners = await bench.raw.sendCommand(['CLIENT', 'LIST', 'TYPE', 'pubsub'])
    return String(listeners).includes('sub=1')
  })
  const sentAt = performance.now()
  await other.send('q', [envelope('a')], { signal })
  assert.equal((await received).length, 1)
  assert.ok(performance.now() - sentAt < 30_000)
  await bench.dispose()
}

async function refusedLate(t: TestContext, server: RedisServer): Promise<void> {
  const bench = await open(server.url)
  const rules = '+@all -subscribe ~{late:*'
  await bench.raw.sendCommand(['ACL', 'SETUSER', 'late', 'on', '>pw', ...rules.split(' ')])
  const warnings: string[] = []
  const logger = { ...silentLogger, warn: (message: string) => void warnings.push(message) }
  const url = server.url.replace('//', '//late:pw@')
  const late = await connectTo({ url, prefix: 'late', pollMs: 60_000 }, logger)
  t.after(() => late.close())
  await late.topology.ensure([{ name: 'q', owner: 'team', maxDepth: undefined }], signal)
  server.freeze()
  const subscribing = subscribeTo(late, 5_000)
  const begun = await Promise.race([subscribing, sleep(15_000, undefined, { ref: false })])
  server.thaw()
  assert.ok(begun !== undefined, 'it is held up')
  await until('the refusal', () => warnings.join().includes('cannot listen for news'))
  const received = begun.receive({ max: 1, waitMs: 30_000, signal })
  await late.send('q', [envelope('a')], { signal })
  assert.equal((await received).length, 1)
  await bench.dispose()
}

/** The machine still takes connections, and the server never says a word. */
async function connectWhileFrozen(server: RedisServer): Promise<void> {
  server.freeze()
  try {
    const startedAt = performance.now()
    await assert.rejects(connectTo({ url: server.url, timeoutMs: 500 }), /cannot connect to Redis/)
    assert.ok(performance.now() - startedAt < 5_000)
  } finally {
    server.thaw()
  }
}

async function callWhileFrozen(server: RedisServer): Promise<void> {
  const bench = await open(server.url, { timeoutMs: 500 })
  server.freeze()
  const error = await bench.transport
    .send('q', [envelope('a')], { signal })
    .catch((cause: unknown) => cause)
    .finally(() => server.thaw())
  const fault = bench.transport.diagnose(error)
  assert.equal(fault.code, 'unavailable')
  assert.equal(fault.outcome, 'unknown')
  await until('the send', async () => {
    const [sent] = await bench.transport.send('q', [envelope('a')], { signal }).catch(() => [])
    return sent?.ok === true
  })
  assert.equal((await bench.transport.browse?.gauge('q'))?.depth, 1)
  await bench.dispose()
}

/** The answer goes into the hole while the server has handed the message out. */
async function lostAnswer(server: RedisServer, some: readonly Partial<Envelope>[]): Promise<void> {
  const proxy = await tcpProxy(server.port)
  const bench = await open(server.url)
  const far = await bench.another({ url: throughProxy(proxy), timeoutMs: 500, listen: false })
  const subscription = await subscribeTo(far, 3_600_000)
  const max = some.length
  await subscription.receive({ max, waitMs: 0, signal })
  const sent = some.map((more, n) => envelope(`m${n}`, more))
  await bench.transport.send('q', sent, { signal })
  proxy.block('down')
  await assert.rejects(subscription.receive({ max, waitMs: 0, signal }))
  assert.equal((await bench.transport.browse?.gauge('q'))?.inFlight, max)
  await proxy.heal()
  const back: Delivery[] = []
  await until('the messages again', async () => {
    back.push(...(await subscription.receive({ max, waitMs: 100, signal }).catch(() => [])))
    return back.length === max
  })
  assert.deepEqual(
    back.map(({ envelope: { id } }) => id),
    sent.map(({ id }) => id),
  )
  for (const { deliveries, alone, history } of back) {
    assert.deepEqual([deliveries, alone, history.counted], [2, false, 0])
  }
  await bench.dispose()
  await proxy.close()
}

async function listenInABlackHole(server: RedisServer): Promise<void> {
  const proxy = await tcpProxy(server.port)
  const bench = await open(server.url)
  const far = await bench.another({ url: throughProxy(proxy), timeoutMs: 1_000, pollMs: 60_000 })
  const subscription = await subscribeTo(far)
  await subscription.receive({ max: 1, waitMs: 0, signal })
  proxy.blackHole()
  await proxy.heal()
  // Heartbeat every 10 s, 5 s for its answer: after that a new connection listens and hears at once again.
  await until(
    'news at once',
    async () => {
      const left = await subscription.receive({ max: 10, waitMs: 0, signal }).catch(() => [])
      await subscription.settle(left.map((delivery) => ({ as: 'acked', delivery })))
      const waiting = subscription.receive({ max: 10, waitMs: 900, signal }).catch(() => [])
      await sleep(100)
      const startedAt = performance.now()
      const id = `m${startedAt}`
      await bench.transport.send('q', [envelope(id)], { signal })
      const got = await waiting
      const tookMs = performance.now() - startedAt
      await subscription.settle(got.map((delivery) => ({ as: 'acked', delivery })))
      return got.some((delivery) => delivery.envelope.id === id) && tookMs < 300
    },
    40_000,
  )
  const channels = await bench.raw.sendCommand(['PUBSUB', 'NUMSUB', bench.key('news')])
  assert.deepEqual(channels, [bench.key('news'), 1])
  await bench.dispose()
  await proxy.close()
}
