import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, afterEach, before, describe, type TestContext, test } from 'node:test'
import { type RabbitmqServer, startRabbitmq } from '../../scripts/rig/rabbitmq-server.ts'
import { codeOf } from '../../src/conformance/acts.ts'
import { type Logger, silentLogger } from '../../src/model/logger.ts'
import { backendUrl } from '../backends.ts'
import {
  ensure,
  envelope,
  freshName,
  never,
  openRabbit,
  subscribe,
  take,
  withChannel,
} from '../transports/rabbitmq-subjects.ts'
import { until } from '../transports/until.ts'
import { openLoad } from './rabbitmq-load.ts'
import { tcpProxy } from './tcp-proxy.ts'

/** These break the broker, so it is a private one. */
describe('a RabbitMQ that fails', { skip: backendUrl('rabbitmq') === undefined }, () => {
  let server: RabbitmqServer
  before(async () => {
    server = await startRabbitmq()
  })
  after(() => server.stop())
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
  })

  test('Restarted and killed under load: what was confirmed is there, and work goes on by itself.', (t) =>
    restarted(t, server))
  test('Connections that are cut under load come back, and lose nothing.', (t) => cut(t, server))
  test('A connection that died without a word is noticed: its calls end, and the next ones work.', () =>
    silent(server))
  for (const low of ['memory', 'disk'] as const) {
    test(`An alarm of the broker (${low}) under load refuses sends by name, consumers go on acking, and nothing is lost.`, (t) =>
      alarmed(t, server, low))
  }
  test('What a killed process had in hand is delivered to others.', () => killed(server))
  test('A delivery that takes longer than the broker waits is lost, and the subscription goes on.', () =>
    tooLong(server))
  test('A queue that is deleted is missed, and consumed from again once it is back.', () =>
    deleted(server))
})

const closers: (() => Promise<void>)[] = []

async function opened(url: string, queue: string, logger: Logger = silentLogger) {
  const options = { url, delays: false, timeoutMs: 2_000, heartbeatMs: 1_000 }
  const transport = await openRabbit(options, logger)
  closers.push(() => transport.close())
  await ensure(transport, queue)
  return transport
}

async function restarted(t: TestContext, server: RabbitmqServer): Promise<void> {
  const queue = freshName('restarted')
  const transport = await opened(server.url, queue)
  const load = await openLoad(transport, queue)
  for (const how of ['clean', 'crash'] as const) {
    await until('some work', () => load.done.size > 100)
    await server.halt(how)
    await until('the outage to be told', () => (transport.problems?.() ?? []).length > 0)
    await server.resume()
    const backAt = Date.now()
    const seen = load.done.size
    await until('work after the restart', () => load.done.size > seen + 100)
    t.diagnostic(`${how}: work goes on within ${Date.now() - backAt} ms after the broker answers`)
    // The two connections come back one after the other.
    await until('nothing to be wrong any more', () => transport.problems?.().length === 0)
  }
  await load.finish()
  t.diagnostic(`${load.confirmed.size} confirmed, all done, ${load.again()} delivered again`)
}

async function cut(t: TestContext, server: RabbitmqServer): Promise<void> {
  const proxy = await tcpProxy(server.port)
  closers.push(() => proxy.close())
  const queue = freshName('cut')
  const transport = await opened(`amqp://guest:guest@127.0.0.1:${proxy.port}`, queue)
  const load = await openLoad(transport, queue)
  const gaps: number[] = []
  for (let times = 0; times < 5; times++) {
    const seen = load.done.size
    await until('some work', () => load.done.size > seen + 50)
    proxy.cut()
    const cutAt = Date.now()
    const before = load.done.size
    await until('work after the cut', () => load.done.size > before)
    gaps.push(Date.now() - cutAt)
  }
  await load.finish()
  t.diagnostic(`work went on after ${gaps.join(', ')} ms; ${load.again()} delivered again`)
}

async function silent(server: RabbitmqServer): Promise<void> {
  const proxy = await tcpProxy(server.port)
  closers.push(() => proxy.close())
  const queue = freshName('silent')
  const transport = await opened(`amqp://guest:guest@127.0.0.1:${proxy.port}`, queue)
  const from = await subscribe(transport, queue)
  await transport.send(queue, [envelope()], { signal: never })
  const [held] = await take(from, 1)
  proxy.blackHole()
  const [sent] = await transport.send(queue, [envelope()], { signal: never })
  assert.equal(sent?.ok === false && sent.fault.outcome, 'unknown')
  assert.equal(sent && codeOf(sent), 'unavailable')
  await until('the claim to be lost', () => held?.claim.lost.aborted === true)
  proxy.heal()
  await until('a send that works', async () => {
    const outcomes = await transport.send(queue, [envelope()], { signal: never }).catch(() => [])
    return outcomes.some((outcome) => outcome.ok)
  })
  const came = await take(from, 2)
  assert.ok(came.some((one) => one.envelope.id === held?.envelope.id))
}

const ALARMS = {
  memory: {
    on: ['set_vm_memory_high_watermark', '0.000001'],
    off: ['set_vm_memory_high_watermark', 'absolute', '512MB'],
  },
  disk: {
    on: ['set_disk_free_limit', '1000000GB'],
    off: ['set_disk_free_limit', '50MB'],
  },
} as const

async function alarmed(t: TestContext, server: RabbitmqServer, low: keyof typeof ALARMS) {
  const [queue, backlog] = [freshName('alarmed'), freshName('backlog')]
  const transport = await opened(server.url, queue)
  await ensure(transport, backlog)
  const many = Array.from({ length: 300 }, () => envelope())
  assert.ok((await transport.send(backlog, many, { signal: never })).every((one) => one.ok))
  const load = await openLoad(transport, queue)
  await until('some work', () => load.done.size > 100)
  const alarmedAt = Date.now()
  await server.ctl(...ALARMS[low].on)
  try {
    await until('sends to be refused', () => load.refused.has('throttled'))
    t.diagnostic(`sends are refused within ${Date.now() - alarmedAt} ms of the alarm`)
    const refusedAt = Date.now()
    const [sent] = await transport.send(queue, [envelope()], { signal: never })
    assert.ok(Date.now() - refusedAt < 1_000, 'told at once')
    assert.ok(sent && !sent.ok)
    const { code, retryable, outcome, cause } = sent.fault
    assert.deepEqual([code, retryable, outcome], ['throttled', true, 'notApplied'])
    const clear = `rabbitmq: it takes none now \\(low on ${low}\\); it will when its alarm ends`
    assert.match(String(cause), new RegExp(clear))
    assert.match(
      transport.problems?.().join() ?? '',
      new RegExp(`takes no messages \\(low on ${low}\\)`),
    )
    const from = await subscribe(transport, backlog, many.length)
    const held = await take(from, many.length)
    const acks = await from.settle(held.map((delivery) => ({ as: 'acked', delivery }) as const))
    assert.ok(acks.every((one) => one.ok))
    await from.close()
    assert.equal((await transport.browse?.gauge(backlog))?.depth, 0)
  } finally {
    await server.ctl(...ALARMS[low].off)
  }
  const [endedAt, confirmed] = [Date.now(), load.confirmed.size]
  await until('sends after the alarm', () => load.confirmed.size > confirmed + 100)
  t.diagnostic(`sends work again ${Date.now() - endedAt} ms after the alarm was ended`)
  assert.deepEqual(transport.problems?.(), [])
  await load.finish()
  t.diagnostic(`${load.confirmed.size} confirmed, all done, ${load.again()} delivered again`)
}

async function killed(server: RabbitmqServer): Promise<void> {
  const queue = freshName('killed')
  const transport = await opened(server.url, queue)
  const ids = Array.from({ length: 20 }, () => envelope())
  await transport.send(queue, ids, { signal: never })
  const script = new URL('rabbitmq-holder.ts', import.meta.url).pathname
  const args = ['--conditions=millrace-source', script, server.url, queue]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  child.kill('SIGKILL')
  await once(child, 'exit')
  const came = await take(await subscribe(transport, queue), 20)
  assert.deepEqual(new Set(came.map((one) => one.envelope.id)), new Set(ids.map((one) => one.id)))
  assert.equal(came.filter((one) => one.deliveries === 2).length, 10)
}

async function tooLong(server: RabbitmqServer): Promise<void> {
  const queue = freshName('too long')
  // It takes unacked deliveries back after 3 s, and looks each second; channels read that when they open.
  await server.ctl('eval', 'application:set_env(rabbit, consumer_timeout, 3000).')
  await server.ctl('eval', 'application:set_env(rabbit, channel_tick_interval, 1000).')
  const warnings: string[] = []
  const logger = { ...silentLogger, warn: (line: string) => void warnings.push(line) }
  const transport = await opened(server.url, queue, logger)
  const from = await subscribe(transport, queue)
  await transport.send(queue, [envelope()], { signal: never })
  const [held] = await take(from, 1)
  assert.ok(held)
  await until('the claim to be lost', () => held.claim.lost.aborted)
  assert.deepEqual((await from.settle([{ as: 'acked', delivery: held }])).map(codeOf), ['lost'])
  assert.match(
    warnings.join(),
    /no ack for 3000 ms, which is the broker's consumer_timeout: raise it there, or shorten handlerTimeoutMs/,
  )
  const [again] = await take(from, 1)
  assert.ok(again)
  assert.equal(again.envelope.id, held.envelope.id)
  assert.equal(again.deliveries, 2)
  assert.deepEqual((await from.settle([{ as: 'acked', delivery: again }])).map(codeOf), ['ok'])
}

async function deleted(server: RabbitmqServer): Promise<void> {
  const queue = freshName('deleted')
  const transport = await opened(server.url, queue)
  const from = await subscribe(transport, queue)
  await transport.send(queue, [envelope()], { signal: never })
  const [held] = await take(from, 1)
  await withChannel(server.url, (channel) => channel.deleteQueue(queue))
  await until('the claim to be lost', () => held?.claim.lost.aborted === true)
  await until('the queue to be missed', () =>
    from.receive({ max: 1, waitMs: 0, signal: never }).then(
      () => false,
      (error: unknown) => transport.diagnose(error).code === 'notFound',
    ),
  )
  await ensure(transport, queue)
  const sent = envelope()
  await transport.send(queue, [sent], { signal: never })
  await until('the message', async () => {
    const batch = await from.receive({ max: 1, waitMs: 100, signal: never }).catch(() => [])
    return batch[0]?.envelope.id === sent.id
  })
}
