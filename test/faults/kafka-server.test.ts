import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kafka, startKafka } from '../../scripts/rig/kafka-server.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import type { KafkaSettings } from '../../src/transports/kafka/options.ts'
import { backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'
import { type Connected, connected, signal, subscribed } from './kafka-connect.ts'

/** These break the broker, so it is a private one. A killed process loses nothing that the kernel has; a power cut might. */
const available = backendUrl('kafka') !== undefined
let runs = 0

if (available)
  describe('a kafka that fails', () => {
    let server: Kafka
    before(async () => {
      server = await startKafka()
    })
    after(() => server.stop())

    for (const how of ['crash', 'clean'] as const) {
      test(`restarted (${how}) under load: what was confirmed is there, and work goes on by itself`, (t) =>
        throughTrouble(t, server, () => node(server).restart(how)))
    }
    test('connections that are cut under load lose nothing', (t) =>
      throughTrouble(t, server, async ({ cut }) => cut()))
    test('a broker that is silent for a while loses nothing', (t) =>
      throughTrouble(t, server, async () => {
        node(server).freeze()
        await sleep(1_000)
        node(server).thaw()
      }))
    test('a worker that is killed loses nothing, and what it had acked does not come again', (t) =>
      killWorker(t, server))
    test('a worker that slept past its session is told that its acks are lost', (t) =>
      wakeTooLate(t, server))
    test('a planned rebalance doubles nothing for handlers that end within revokeDrainMs', (t) =>
      rebalance(t, server, { revokeDrainMs: 10_000 }, 400, 0))
    test('a planned rebalance doubles at most what was in flight for slower ones', (t) =>
      rebalance(t, server, { revokeDrainMs: 100 }, 2_000, 12))
    test('a broker that falls silent while a group shares out anew: what is held is given up at the end of the session', (t) =>
      silentJoin(t, server))
    test('a frozen broker does not hold a close for long, once the session is over and nobody says who coordinates', (t) =>
      closeOutOfReach(t, server))
    test('a handler that takes longer than the session keeps its partition', (t) =>
      slowHandler(t, server))
  })

function node(server: Kafka): Kafka['nodes'][number] {
  const [first] = server.nodes
  assert.ok(first)
  return first
}

interface Stage {
  readonly prefix: string
  connect(settings?: KafkaSettings): Promise<Connected>
}

async function stage(t: TestContext, server: Kafka): Promise<Stage> {
  runs += 1
  const prefix = `run${runs}-`
  const connect = async (settings: KafkaSettings = {}): Promise<Connected> => {
    const one = await connected(server.brokers.join(','), { prefix, ...settings })
    t.after(() => one.transport.close())
    return one
  }
  const { transport } = await connect()
  await transport.topology.ensure([{ name: 'q', owner: 'o', maxDepth: undefined }], signal)
  return { prefix, connect }
}

function envelope(id: string): Envelope {
  return { id, body: new Uint8Array([1, 2, 3]), headers: {}, priority: 0 }
}

const ack = (from: Subscription, batch: readonly Delivery[]) =>
  from.settle(batch.map((delivery) => ({ as: 'acked', delivery })))

/** Producers and workers while the trouble happens. */
async function throughTrouble(
  t: TestContext,
  server: Kafka,
  trouble: (connected: Connected) => Promise<void>,
): Promise<void> {
  const { connect } = await stage(t, server)
  const troubled = await connect()
  const [sending, working] = [new AbortController(), new AbortController()]
  const confirmed = new Set<string>()
  const done = new Map<string, number>()
  const producers = [0, 1, 2].map((n) =>
    produce(troubled.transport, `p${n}`, confirmed, sending.signal),
  )
  const workers = [0, 1].map(() => work(troubled.transport, done, working.signal))
  await until('200 done', () => done.size > 200, 60_000)
  await trouble(troubled)
  const backAt = Date.now()
  const [sent, worked] = [confirmed.size, done.size]
  await until('sends after the trouble', () => confirmed.size > sent + 50, 60_000)
  const sendsAfterMs = Date.now() - backAt
  await until('work after the trouble', () => done.size > worked + 50, 60_000)
  t.diagnostic(`sends resumed after ${sendsAfterMs} ms, work after ${Date.now() - backAt} ms`)
  const missing = (): string[] => [...confirmed].filter((id) => !done.has(id))
  sending.abort()
  await Promise.all(producers)
  const sentAt = Date.now()
  await until('nothing missing', () => missing().length === 0, 60_000).catch(() => {})
  t.diagnostic(`the last of them ${Date.now() - sentAt} ms after the last send`)
  working.abort()
  await Promise.all(workers)
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
    await sleep(10)
  }
}

async function work(
  transport: Transport,
  done: Map<string, number>,
  stop: AbortSignal,
): Promise<void> {
  const subscription = await subscribed(transport)
  while (!stop.aborted) {
    const batch = await subscription.receive({ max: 20, waitMs: 100, signal })
    for (const { envelope: sent } of batch) done.set(sent.id, (done.get(sent.id) ?? 0) + 1)
    const outcomes = await ack(subscription, batch)
    const open = batch.filter((_, i) => {
      const outcome = outcomes[i]
      return outcome?.ok === false && outcome.fault.retryable
    })
    if (open.length > 0) await ack(subscription, open)
  }
  await subscription.close()
}

async function startWorker(t: TestContext, server: Kafka, prefix: string) {
  const file = new URL('./kafka-worker.ts', import.meta.url).pathname
  const args = ['--conditions=millrace-source', file, server.brokers.join(','), prefix]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString()
  })
  const saidOf = (what: string): readonly string[] =>
    said
      .split('\n')
      .flatMap((line) => (line.startsWith(`${what} `) ? [line.split(' ')[1] ?? ''] : []))
  return { child, saidOf }
}

async function killWorker(t: TestContext, server: Kafka): Promise<void> {
  const { prefix, connect } = await stage(t, server)
  const { transport } = await connect()
  const sent = Array.from({ length: 60 }, (_, n) => envelope(`m${n}`))
  await transport.send('q', sent, { signal })
  const { child, saidOf } = await startWorker(t, server, prefix)
  await until('40 are taken', () => saidOf('holding').length > 0, 30_000)
  child.kill('SIGKILL')
  const killedAt = Date.now()
  const acked = new Set(saidOf('acked'))
  const subscription = await subscribed(transport)
  const seen = new Set<string>()
  let firstAfterMs = 0
  await until(
    'all others',
    async () => {
      const batch = await subscription.receive({ max: 100, waitMs: 100, signal })
      if (batch.length > 0 && seen.size === 0) firstAfterMs = Date.now() - killedAt
      for (const { envelope: one } of batch) seen.add(one.id)
      await ack(subscription, batch)
      return sent.every(({ id }) => seen.has(id) || acked.has(id))
    },
    30_000,
  )
  t.diagnostic(`the next consumer had its first message ${firstAfterMs} ms after the kill`)
  assert.deepEqual(
    [...seen].filter((id) => acked.has(id)),
    [],
  )
}

async function wakeTooLate(t: TestContext, server: Kafka): Promise<void> {
  const { prefix, connect } = await stage(t, server)
  const { transport } = await connect()
  const sent = Array.from({ length: 60 }, (_, n) => envelope(`m${n}`))
  await transport.send('q', sent, { signal })
  const { child, saidOf } = await startWorker(t, server, prefix)
  await until('40 are taken', () => saidOf('holding').length > 0, 30_000)
  child.kill('SIGSTOP')
  const before = saidOf('acked').length
  const subscription = await subscribed(transport)
  const seen = new Set<string>()
  const others = async (): Promise<boolean> => {
    const batch = await subscription.receive({ max: 100, waitMs: 100, signal })
    for (const { envelope: one } of batch) seen.add(one.id)
    await ack(subscription, batch)
    return seen.size === 60 - before
  }
  await until('all that was not acked', others, 30_000)
  child.kill('SIGCONT')
  await until('its acks are answered', () => saidOf('lost').length === 40 - before, 30_000)
  assert.equal(saidOf('acked').length, before)
  assert.equal((await transport.browse?.gauge('q'))?.depth, 0)
}

/** One consumer at work, another one comes. */
async function rebalance(
  t: TestContext,
  server: Kafka,
  settings: KafkaSettings,
  handlerMs: number,
  mostTwice: number,
): Promise<void> {
  const { connect } = await stage(t, server)
  const { transport } = await connect(settings)
  const sent = Array.from({ length: 60 }, (_, n) => envelope(`m${n}`))
  await transport.send('q', sent, { signal })
  const done = new Map<string, number>()
  const stop = new AbortController()
  let ending = 0
  const handle = async (from: Subscription, delivery: Delivery): Promise<void> => {
    delivery.claim.ending.addEventListener('abort', () => (ending += 1))
    await sleep(handlerMs)
    const { id } = delivery.envelope
    done.set(id, (done.get(id) ?? 0) + 1)
    await ack(from, [delivery])
  }
  const consume = async (): Promise<void> => {
    const subscription = await subscribed(transport)
    while (!stop.signal.aborted) {
      const batch = await subscription.receive({ max: 12, waitMs: 100, signal })
      await Promise.all(batch.map((delivery) => handle(subscription, delivery)))
    }
    await subscription.close()
  }
  const first = consume()
  await until('work has begun', () => done.size > 0, 30_000)
  const second = consume()
  await until('all done', () => done.size === 60, 60_000)
  stop.abort()
  await Promise.all([first, second])
  const twice = [...done.values()].filter((times) => times > 1).length
  t.diagnostic(`${twice} of 60 done twice, ${ending} were told that their partition goes`)
  assert.ok(ending > 0)
  assert.ok(twice <= mostTwice, `${twice} done twice`)
}

async function slowHandler(t: TestContext, server: Kafka): Promise<void> {
  const { connect } = await stage(t, server)
  const { transport } = await connect()
  const subscription = await subscribed(transport)
  await transport.send('q', [envelope('slow')], { signal })
  let held: readonly Delivery[] = []
  await until(
    'the message',
    async () => {
      held = await subscription.receive({ max: 1, waitMs: 100, signal })
      return held.length > 0
    },
    30_000,
  )
  // Sessions last 1,500 ms.
  await sleep(4_000)
  assert.equal(held[0]?.claim.lost.aborted, false)
  assert.deepEqual(await ack(subscription, held), [{ ok: true }])
}

/** A join waits for a member that does not notice; its own limit is several sessions. */
async function silentJoin(t: TestContext, server: Kafka): Promise<void> {
  const { connect } = await stage(t, server)
  const revokeDrainMs = 100
  const unaware = await connect({ revokeDrainMs, sessionTimeoutMs: 60_000, heartbeatMs: 5_000 })
  const { transport } = await connect({ revokeDrainMs, timeoutMs: 30_000 })
  const sent = Array.from({ length: 60 }, (_, n) => envelope(`m${n}`))
  await transport.send('q', sent, { signal })
  const held: Delivery[] = []
  const takes = (from: Subscription) => async (): Promise<boolean> => {
    const batch = await from.receive({ max: 60, waitMs: 100, signal })
    held.push(...batch)
    return batch.length > 0
  }
  await until('all is the first one’s', takes(await subscribed(unaware.transport)), 30_000)
  const subscription = await subscribed(transport)
  await until('a share of its own', takes(subscription), 60_000)
  const own = held.at(-1)
  assert.ok(own)
  await subscribed((await connect({ revokeDrainMs })).transport)
  await sleep(500)
  node(server).freeze()
  try {
    // Sessions last 1,500 ms, the join more than 10 s.
    await until('the claim to be given up', () => own.claim.lost.aborted, 5_000)
  } finally {
    node(server).thaw()
  }
  await until('it is handed out again', takes(subscription), 60_000)
}

async function closeOutOfReach(t: TestContext, server: Kafka): Promise<void> {
  const { connect } = await stage(t, server)
  const { transport } = await connect({ timeoutMs: 30_000 })
  await transport.send('q', [envelope('a')], { signal })
  const subscription = await subscribed(transport)
  let held: Delivery | undefined
  await until('a message', async () => {
    ;[held] = await subscription.receive({ max: 1, waitMs: 100, signal })
    return held !== undefined
  })
  node(server).freeze()
  try {
    await until('the end of the session', () => held?.claim.lost.aborted === true)
    const closed = transport.close().then(() => 'closed')
    assert.equal(await Promise.race([closed, sleep(8_000, 'still open', { ref: false })]), 'closed')
  } finally {
    node(server).thaw()
  }
}
