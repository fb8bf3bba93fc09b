import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type NatsServer, startNats } from '../../scripts/rig/nats-server.ts'
import type { Ending } from '../../scripts/rig/private-server.ts'
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
import { until } from '../transports/until.ts'
import { throughTrouble } from './nats-load.ts'
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
        throughRestart(t, server, how))
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

async function throughRestart(t: TestContext, server: NatsServer, how: Ending): Promise<void> {
  const bench = await opened(t, server.url)
  await throughTrouble(t, { bench, servers: server.url, trouble: () => server.restart(how) })
}

async function throughProxy(
  t: TestContext,
  server: NatsServer,
  trouble: (proxy: TcpProxy) => Promise<void>,
): Promise<void> {
  const proxy = await tcpProxy(server.port)
  t.after(() => proxy.close())
  const bench = await opened(t, server.url)
  const servers = `nats://127.0.0.1:${proxy.port}`
  await throughTrouble(t, { bench, servers, trouble: () => trouble(proxy) })
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
