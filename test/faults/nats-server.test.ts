import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createMillrace, defineQueue } from 'millrace'
import { nats } from 'millrace/nats'
import { z } from 'zod'
import { type NatsServer, startNats } from '../../scripts/rig/nats-server.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { backendUrl } from '../backends.ts'
import {
  ack,
  envelope,
  type NatsBench,
  one,
  openNats,
  signal,
  take,
} from '../transports/nats-bench.ts'
import { connecting } from '../transports/nats-harness.ts'
import { until } from '../transports/until.ts'
import { type TcpProxy, tcpProxy } from './tcp-proxy.ts'

/** These break the server, so it is a private one, which syncs each write to disk. */
const available = backendUrl('nats') !== undefined

if (available)
  describe('a nats server that fails', () => {
    let server: NatsServer
    before(async () => {
      server = await startNats()
    })
    after(() => server.stop())

    for (const how of ['crash', 'clean'] as const) {
      test(`restarted (${how}) under load: what was confirmed is there, and work goes on by itself`, (t) =>
        throughTrouble(t, server.url, server.url, () => server.restart(how)))
    }
    test('a connection that is cut under load loses nothing', (t) =>
      throughProxy(t, server, async (proxy) => proxy.cut()))
    test('a connection that goes silent under load is found out and loses nothing', (t) =>
      throughProxy(t, server, async (proxy) => {
        proxy.blackHole()
        await sleep(500)
        await proxy.heal()
      }))
    test('a send fails as unavailable while the server is away, and works when it is back', (t) =>
      sendWhileAway(t, server))
    test('a frozen server does not hold a close for long, and a claim is lost at once', (t) =>
      closeWhileFrozen(t, server))
    test('a holder that cannot renew loses its claim before the server gives the message away', (t) =>
      loseTheClaim(t, server))
    test('a worker that is killed gives back what it held, counted, and nothing that it had acked', (t) =>
      killWorker(t, server))
  })

async function opened(t: TestContext, url: string): Promise<NatsBench> {
  const bench = await openNats(url)
  t.after(() => bench.dispose())
  return bench
}

async function throughProxy(
  t: TestContext,
  server: NatsServer,
  trouble: (proxy: TcpProxy) => Promise<void>,
): Promise<void> {
  const proxy = await tcpProxy(server.port)
  t.after(() => proxy.close())
  await throughTrouble(t, server.url, `nats://127.0.0.1:${proxy.port}`, () => trouble(proxy))
}

/** Producers and workers at `url` while the trouble happens; judged over an untroubled connection. */
async function throughTrouble(
  t: TestContext,
  direct: string,
  url: string,
  trouble: () => Promise<void>,
): Promise<void> {
  const bench = await opened(t, direct)
  const client = { pingInterval: 300, maxPingOut: 2 }
  const transport = await connecting(
    nats({ servers: url, client, prefix: bench.prefix, ackWaitMs: 2_000, timeoutMs: 2_000 }),
  )
  t.after(() => transport.close())
  const stop = new AbortController()
  const confirmed = new Set<string>()
  const done = new Map<string, number>()
  const producers = [0, 1, 2].map((n) => produce(transport, `p${n}`, confirmed, stop.signal))
  const workers = [0, 1].map(() => work(transport, done, stop.signal))
  await until('200 done', () => done.size > 200, 60_000)
  await trouble()
  const backAt = Date.now()
  const [sent, worked] = [confirmed.size, done.size]
  await until('sends after the trouble', () => confirmed.size > sent + 50, 60_000)
  const sendsAfterMs = Date.now() - backAt
  await until('work after the trouble', () => done.size > worked + 50, 60_000)
  t.diagnostic(`sends resumed after ${sendsAfterMs} ms, work after ${Date.now() - backAt} ms`)
  stop.abort()
  await Promise.all([...producers, ...workers])
  const missing = (): string[] => [...confirmed].filter((id) => !done.has(id))
  const rest = new AbortController()
  const cleaner = work(bench.transport, done, rest.signal)
  await until('nothing missing', () => missing().length === 0, 60_000).catch(() => {})
  rest.abort()
  await cleaner
  assert.deepEqual(missing(), [])
  const twice = [...done.values()].filter((times) => times > 1).length
  t.diagnostic(`${confirmed.size} confirmed, ${twice} done twice`)
}

async function produce(
  transport: Transport,
  name: string,
  confirmed: Set<string>,
  stop: AbortSignal,
): Promise<void> {
  for (let n = 0; !stop.aborted; ) {
    const batch = Array.from({ length: 5 }, (_, at) => envelope(`${name}-${n + at}`))
    const outcomes = await transport.send('q', batch, { signal }).catch(() => [])
    for (const outcome of outcomes) if (outcome.ok) confirmed.add(outcome.id)
    // The same ids again until each is confirmed, as a relay does.
    if (batch.every(({ id }) => confirmed.has(id))) n += 5
    else await sleep(20)
  }
}

async function work(
  transport: Transport,
  done: Map<string, number>,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    const subscription = await transport
      .subscribe('q', { group: 'g', leaseMs: 30_000, maxInFlight: 20 })
      .catch(() => undefined)
    if (subscription === undefined) {
      await sleep(50)
      continue
    }
    while (!stop.aborted) {
      const deliveries = await subscription
        .receive({ max: 20, waitMs: 500, signal: stop })
        .catch(() => sleep(50, []))
      const outcomes = await subscription.settle(deliveries.map(ack))
      for (const [at, outcome] of outcomes.entries()) {
        const id = deliveries[at]?.envelope.id ?? ''
        // An ack whose answer was lost may have counted; then the message does not come again.
        if (outcome.ok || outcome.fault.outcome === 'unknown') done.set(id, (done.get(id) ?? 0) + 1)
      }
    }
    await subscription.close()
  }
}

async function sendWhileAway(t: TestContext, server: NatsServer): Promise<void> {
  const bench = await opened(t, server.url)
  const transport = await bench.another({ timeoutMs: 500 })
  await server.halt('crash')
  const [sent] = await transport.send('q', [envelope('a')], { signal })
  await server.resume()
  assert.ok(sent && !sent.ok)
  assert.deepEqual([sent.fault.code, sent.fault.retryable], ['unavailable', true])
  await until('the same send', async () => {
    const [again] = await transport.send('q', [envelope('a')], { signal }).catch(() => [])
    return again?.ok === true
  })
  const subscription = await bench.subscribe(transport)
  assert.equal((await one(subscription)).envelope.id, 'a')
  assert.deepEqual(await subscription.receive({ max: 1, waitMs: 200, signal }), [])
}

async function closeWhileFrozen(t: TestContext, server: NatsServer): Promise<void> {
  const bench = await opened(t, server.url)
  const transport = await bench.another()
  await transport.send('q', [envelope('a')], { signal })
  const subscription = await bench.subscribe(transport)
  const { claim } = await one(subscription)
  const waiting = subscription.receive({ max: 1, waitMs: 60_000, signal }).catch(() => [])
  server.freeze()
  try {
    const closed = transport.close().then(() => 'closed')
    await sleep(0)
    assert.equal(claim.lost.aborted, true)
    assert.equal(await Promise.race([closed, sleep(8_000, 'still open', { ref: false })]), 'closed')
    assert.deepEqual(await waiting, [])
  } finally {
    server.thaw()
  }
}

async function loseTheClaim(t: TestContext, server: NatsServer): Promise<void> {
  const proxy = await tcpProxy(server.port)
  t.after(() => proxy.close())
  const bench = await opened(t, server.url)
  const holder = await bench.another({ servers: `nats://127.0.0.1:${proxy.port}` })
  await bench.transport.send('q', [envelope('a')], { signal })
  const subscription = await bench.subscribe(holder)
  const delivery = await one(subscription)
  const events: string[] = []
  delivery.claim.lost.addEventListener('abort', () => events.push('lost'))
  proxy.blackHole()
  const [again] = await take(await bench.subscribe(), 1, 20_000)
  events.push('given away')
  assert.deepEqual(events, ['lost', 'given away'])
  assert.equal(again?.history.crashes, 1)
  const [late] = await subscription.settle([ack(delivery)])
  assert.ok(late && !late.ok)
  assert.equal(late.fault.code, 'lost')
}

async function killWorker(t: TestContext, server: NatsServer): Promise<void> {
  const bench = await opened(t, server.url)
  const ids = Array.from({ length: 10 }, (_, at) => `m${at}`)
  await bench.transport.send(
    'q',
    ids.map((id) => envelope(id)),
    { signal },
  )
  const file = new URL('nats-worker.ts', import.meta.url).pathname
  const args = ['--conditions=millrace-source', file, server.url, bench.prefix]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  child.stdout.on('data', (bytes) => {
    said += bytes
  })
  await until('five acks', () => said.split('acked ').length > 5)
  child.kill('SIGKILL')
  const killedAt = Date.now()
  const acked = new Set([...said.matchAll(/^acked (.*)$/gm)].map(([, id]) => id))
  const subscription = await bench.subscribe()
  const back = new Set<string>()
  await until('what it held', async () => {
    for (const delivery of await subscription.receive({ max: 10, waitMs: 500, signal })) {
      assert.equal(acked.has(delivery.envelope.id), false)
      assert.deepEqual([delivery.alone, delivery.history.crashes], [true, 1])
      back.add(delivery.envelope.id)
      await subscription.settle([ack(delivery)])
    }
    return back.size === 5
  })
  t.diagnostic(
    `what a killed worker held was back after ${Date.now() - killedAt} ms (ack wait 1000 ms)`,
  )
  assert.equal((await bench.transport.browse?.gauge('q'))?.inFlight, 0)
}

if (available) {
  const orders = defineQueue({ name: 'orders', owner: 'team', payload: z.string() })
  test('a nats server that wants a password refuses by name, and the password is not shown', async (t) => {
    const config = ['authorization { user: shop, password: geheim }']
    const server = await startNats({ config })
    t.after(() => server.stop())
    const app = createMillrace({
      transport: nats({ servers: server.url.replace('//', '//shop:falsch@'), timeoutMs: 2_000 }),
      queues: [orders],
      logger: silentLogger,
    })
    const error = await app.then(
      () => undefined,
      (cause: unknown) => cause,
    )
    assert.ok(error instanceof Error)
    assert.match(`${error.message} ${String(error.cause)}`, /authorization/i)
    assert.doesNotMatch(`${error.stack} ${String(error.cause)}`, /falsch/)
    const plain = nats({ servers: server.url.replace('nats://', 'tls://shop:geheim@') })
    const refused = createMillrace({ transport: plain, queues: [orders], logger: silentLogger })
    await assert.rejects(refused, 'tls:// must not fall back to plain text')
    for (const right of [
      { servers: server.url, client: { user: 'shop', pass: 'geheim' } },
      { servers: server.url.replace('//', '//shop:geheim@') },
    ]) {
      const opened = await createMillrace({
        transport: nats(right),
        queues: [orders],
        logger: silentLogger,
      })
      assert.equal((await opened.health()).ok, true)
      await opened.close()
    }
  })
}
