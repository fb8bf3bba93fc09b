import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createMillrace, defineQueue, PermanentError, silentLogger } from 'millrace'
import { type RabbitmqSettings, rabbitmq } from 'millrace/rabbitmq'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import type { Delivery } from '../../src/model/delivery.ts'
import type { QueueSpec, Transport } from '../../src/transport/transport.ts'
import { laneFor, lanePlaceOf } from '../../src/transports/rabbitmq/lane-place.ts'
import { resolve } from '../../src/transports/rabbitmq/options.ts'
import { backendUrl } from '../backends.ts'
import {
  deleteLanes,
  ensure,
  envelope,
  freshName,
  never,
  openRabbit,
  subscribe,
  take,
  withChannel,
} from './rabbitmq-subjects.ts'
import { until } from './until.ts'

const skip = backendUrl('rabbitmq') === undefined
const url = backendUrl('rabbitmq') ?? 'amqp://localhost'
const made: { readonly base: string; readonly lanes: number }[] = []
const plain: string[] = []
const open: Transport[] = []

after(async () => {
  for (const transport of open) await transport.close()
  if (skip) return
  await withChannel(url, async (channel) => {
    for (const { base, lanes } of made) await deleteLanes(channel, base, lanes)
    for (const queue of plain) await channel.deleteQueue(queue)
  })
})

function fresh(lanes: number): string {
  const base = freshName('in order')
  made.push({ base, lanes })
  return base
}

async function opened(settings: RabbitmqSettings): Promise<Transport> {
  const transport = await openRabbit({ url, delays: false, ...settings })
  open.push(transport)
  assert.ok(transport.ordered)
  return transport.ordered
}

function spec(name: string, more: Partial<QueueSpec> = {}): QueueSpec {
  return { name, owner: 'team-test', maxDepth: undefined, ordered: true, ...more }
}

async function refusal(name: string, settings: RabbitmqSettings, more: Partial<QueueSpec> = {}) {
  const transport = await opened(settings)
  const refused = transport.topology.ensure([spec(name, more)], never)
  return await refused.then(
    () => '',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  )
}

function acked(delivery: Delivery) {
  return { as: 'acked', delivery } as const
}

test('Another number of lanes is refused in one line that names both, whoever was first, and makes no lane.', {
  skip,
}, async () => {
  const name = fresh(4)
  assert.equal(await refusal(name, { lanes: 4 }), '')
  for (const lanes of [3, 5]) {
    const said = await refusal(name, { lanes })
    assert.match(said, new RegExp(`"${name}" has 4 lanes, got lanes: ${lanes}; pass the number`))
    assert.doesNotMatch(said, /\n/)
    assert.match(await refusal(name, { lanes, topology: 'check' }), /has 4 lanes/)
  }
  assert.equal(await refusal(name, { queues: { [name]: { lanes: 4 } }, topology: 'check' }), '')
  const beyond = await withChannel(url, (channel) => channel.checkQueue(`${name}.lane.4`)).then(
    () => 'there',
    () => 'not there',
  )
  assert.equal(beyond, 'not there')
})

test('Of a batch, nothing of a key is stored behind one that failed.', { skip }, async () => {
  const name = fresh(4)
  const transport = await opened({ lanes: 4 })
  await transport.topology.ensure([spec(name)], never)
  const [a1, a2, a3] = ['A1', 'A2', 'A3'].map((id) => envelope({ id, orderingKey: 'A' }))
  const b1 = envelope({ id: 'B1', orderingKey: 'B' })
  assert.ok(a1 && a2 && a3)
  const impossible = { ...a2, headers: { ['x'.repeat(300)]: 'its name is too long' } }
  const sent = await transport.send(name, [a1, impossible, a3, b1], { signal: never })
  assert.deepEqual(
    sent.map((each) => (each.ok ? 'stored' : `${each.fault.code} ${each.fault.outcome}`)),
    ['stored', 'invalid notApplied', 'invalid notApplied', 'stored'],
  )
  assert.deepEqual((await transport.browse?.gauge(name))?.depth, 2)
})

test('Of two that make the lanes at once with different numbers one is refused.', {
  skip,
}, async () => {
  const name = fresh(6)
  const said = await Promise.all([refusal(name, { lanes: 2 }), refusal(name, { lanes: 6 })])
  assert.equal(said.filter((text) => text === '').length, 1, said.join('\n'))
  assert.match(said.join(''), /has [26] lanes, got lanes: [26]/)
})

test('A queue without lanes is not taken for one with lanes, nor the other way round.', {
  skip,
}, async () => {
  const before = freshName('plain')
  plain.push(before)
  const transport = await openRabbit({ url, delays: false, lanes: 2 })
  open.push(transport)
  await ensure(transport, before)
  assert.match(await refusal(before, { lanes: 2 }), /is there without lanes/)
  const name = fresh(2)
  assert.equal(await refusal(name, { lanes: 2 }), '')
  await assert.rejects(ensure(transport, name), /has lanes, because it was in order/)
})

test('What would break the order, or take messages away, is refused: lanes that let several in, limits, exchanges, long waits.', {
  skip,
}, async () => {
  const several = fresh(1)
  const limited = fresh(1)
  await withChannel(url, async (channel) => {
    const quorum = { 'x-queue-type': 'quorum' }
    await channel.assertQueue(`${several}.lane.0`, { arguments: quorum })
    await channel.assertQueue(`${limited}.lane.0`, {
      arguments: {
        ...quorum,
        'x-single-active-consumer': true,
        'x-delivery-limit': 500,
        'x-dead-letter-exchange': 'amq.topic',
        'x-dead-letter-strategy': 'at-least-once',
        'x-overflow': 'reject-publish',
      },
    })
  })
  assert.match(await refusal(several, { lanes: 1 }), /lets several consumers in at once/)
  assert.match(await refusal(limited, { lanes: 1 }), /at its return number 500 \(delivery-limit\)/)
  const queues = { [several]: { exchange: 'amq.topic' } }
  assert.match(await refusal(several, { lanes: 1, queues }), /by the default exchange/)
  const slow = { consumerTimeoutMs: 60_000, lanes: 1 }
  const said = await refusal(several, slow, { retryWaitMs: 30_000, handlerTimeoutMs: 1_000 })
  assert.match(said, /up to 30000 ms behind a run of 1000 ms, .* after 60000 ms/)
  const missing = await refusal(freshName('nowhere'), { lanes: 2, topology: 'check' })
  assert.match(missing, /nowhere.lanes" does not exist; make it/)
})

test('An app is told at start and at the send what lanes cannot do.', { skip }, async (t) => {
  const prefix = `${freshName('refused')}-`
  made.push({ base: `${prefix}steps`, lanes: 2 })
  const common = {
    name: 'steps',
    owner: 'team-a',
    payload: z.string(),
    capacity: 'unbounded',
    orderingKey: (payload: string) => payload,
  } as const
  const going = defineQueue({ ...common, onDead: 'continue' })
  const app = (queue: typeof going, settings: RabbitmqSettings = {}) =>
    createMillrace({
      ...{ store: memoryStore(), queues: [queue], logger: silentLogger },
      transport: rabbitmq({ url, prefix, lanes: 2, delays: false, ...settings }),
    })
  await assert.rejects(
    app(defineQueue({ ...common, onDead: 'halt-key' })),
    /rabbitmq cannot hold back a key/,
  )
  await assert.rejects(
    app(defineQueue({ ...common, onDead: 'continue', delayed: 'wait' })),
    /delayed: rabbitmq cannot/,
  )
  await assert.rejects(
    app(going, { queueType: 'classic' }),
    /keeps no order by key; use queueType: 'quorum'/,
  )
  const started = await app(going)
  t.after(() => started.close())
  await assert.rejects(started.send(going, 'a', { delayMs: 1_000 }), /order/)
})

test('An app has queues in order beside others, each with what it needs: retries, dead letters, redrives, pauses, stats.', {
  skip,
}, async (t) => {
  const prefix = `${freshName('app')}-`
  const common = { owner: 'team-a', payload: z.string(), capacity: 'unbounded' } as const
  const retry = { attempts: 3, baseMs: 100, maxMs: 200 }
  const steps = defineQueue({
    ...{ ...common, name: 'steps', retry },
    onDead: 'continue',
    orderingKey: (payload) => payload.slice(0, 1),
  })
  const mails = defineQueue({ ...common, name: 'mails', retry })
  made.push({ base: `${prefix}steps`, lanes: 3 })
  plain.push(`${prefix}mails`)
  const transport = rabbitmq({ url, prefix, lanes: 3, delays: false })
  const app = await createMillrace({
    ...{ transport, store: memoryStore(), queues: [steps, mails], logger: silentLogger },
  })
  t.after(() => app.close())
  const runs: string[] = []
  let isMended = false
  const handle = ({ payload, attempt }: { payload: string; attempt: number }): void => {
    runs.push(`${payload} ${attempt}`)
    if (payload.endsWith('flaky') && attempt < 3) throw new Error('again')
    if (payload.endsWith('dead') && !isMended) throw new PermanentError('no')
  }
  app.work(steps, handle, { concurrency: 6 })
  app.work(mails, handle)
  await app.admin.pause(steps)
  await app.start()
  await app.sendBatch(steps, ['a1', 'a2 flaky', 'b1 dead', 'a3', 'b2', 'a4'])
  await app.send(mails, 'm flaky', { delayMs: 50 })
  await until('the mail', () => runs.includes('m flaky 3'))
  assert.equal((await app.admin.stats(steps)).paused, true)
  assert.deepEqual(runs, ['m flaky 1', 'm flaky 2', 'm flaky 3'])
  await app.admin.resume(steps)
  await until('all steps', () => runs.length === 3 + 8)
  const ofKey = (key: string): readonly string[] => runs.filter((run) => run.startsWith(key))
  assert.deepEqual(ofKey('a'), ['a1 1', 'a2 flaky 1', 'a2 flaky 2', 'a2 flaky 3', 'a3 1', 'a4 1'])
  assert.deepEqual(ofKey('b'), ['b1 dead 1', 'b2 1'])
  const { items } = await app.admin.deadLetters.list(steps, {})
  assert.deepEqual(
    items.map(({ errorClass }) => errorClass),
    ['permanent'],
  )
  isMended = true
  await app.admin.deadLetters.redrive(steps, { ids: [items[0]?.id ?? ''], reason: 'mended' })
  await until('the redriven one', () => runs.includes('b1 dead 1') && runs.length === 3 + 9)
  assert.deepEqual(ofKey('b'), ['b1 dead 1', 'b2 1', 'b1 dead 1'])
  assert.equal((await app.health()).ok, true)
  const attempts = app.admin.backend().abilities.filter(({ need }) => need === 'attempts')
  assert.deepEqual(
    attempts.map(({ from, how }) => [from, how.startsWith('with orderingKey: a journal')]),
    [
      ['layer', false],
      ['store', true],
    ],
  )
})

test('A key has one lane, for other programs, too: what they send into it is in its order.', {
  skip,
}, async () => {
  const name = fresh(5)
  const transport = await opened({ lanes: 5 })
  await transport.topology.ensure([spec(name)], never)
  const [first, third] = [envelope({ orderingKey: 'k' }), envelope({ orderingKey: 'k' })]
  await transport.send(name, [first], { signal: never })
  const place = lanePlaceOf(resolve({ url, lanes: 5 }), name)
  const { queue } = laneFor(place, first)
  await withChannel(url, async (channel) => {
    const headers = { cloudEvents_partitionkey: 'k' }
    channel.sendToQueue(queue, Buffer.from('{}'), { messageId: 'second', headers })
    await until('it is there', async () => (await channel.checkQueue(queue)).messageCount === 2)
  })
  await transport.send(name, [third], { signal: never })
  assert.equal((await transport.browse?.gauge(name))?.depth, 3)
  const from = await subscribe(transport, name)
  for (const id of [first.id, 'second', third.id]) {
    const [head, ...more] = await take(from, 1)
    assert.deepEqual([head?.envelope.id, head?.lane, more], [id, queue, []])
    if (head) assert.deepEqual(await from.settle([acked(head)]), [{ ok: true }])
  }
  await withChannel(url, (channel) => channel.deleteQueue(queue))
  const [sent] = await transport.send(name, [third], { signal: never })
  assert.equal(sent?.ok === false && sent.fault.code, 'notFound')
})

test('Who comes later gets its share of the lanes, while the others work, and takes over all when they go.', {
  skip,
}, async () => {
  const name = fresh(4)
  const [one, two] = [await opened({ lanes: 4 }), await opened({ lanes: 4 })]
  await one.topology.ensure([spec(name)], never)
  const lanesOf = [new Set<string>(), new Set<string>()] as const
  const stop = [new AbortController(), new AbortController()] as const
  const working = [one, two].map(async (transport, at) => {
    const from = await subscribe(transport, name)
    const { signal } = stop[at === 0 ? 0 : 1]
    while (!signal.aborted) {
      const came = await from.receive({ max: 8, waitMs: 200, signal })
      for (const { lane = '' } of came) lanesOf[at === 0 ? 0 : 1].add(lane)
      await from.settle(came.map(acked))
    }
    await from.close()
  })
  const feed = async (): Promise<void> => {
    const batch = Array.from({ length: 20 }, (_, n) => envelope({ orderingKey: `k${n}` }))
    await one.send(name, batch, { signal: never })
  }
  await until(
    'both have two lanes',
    async () => {
      for (const lanes of lanesOf) lanes.clear()
      await feed()
      await until('what came', async () => lanesOf[0].size + lanesOf[1].size >= 4)
      return lanesOf[0].size === 2 && lanesOf[1].size === 2
    },
    30_000,
  )
  stop[0].abort()
  await until(
    'one has them all',
    async () => {
      lanesOf[1].clear()
      await feed()
      await until('what came', async () => lanesOf[1].size >= 2)
      return lanesOf[1].size === 4
    },
    30_000,
  )
  stop[1].abort()
  await Promise.all(working)
})

test('Who no longer asks leaves its lanes to those who do, but for those in which something runs.', {
  skip,
}, async () => {
  const name = fresh(3)
  const [idle, busy] = [await opened({ lanes: 3 }), await opened({ lanes: 3 })]
  await idle.topology.ensure([spec(name)], never)
  const place = lanePlaceOf(resolve({ url, lanes: 3 }), name)
  const batch = Array.from({ length: 12 }, (_, n) => envelope({ orderingKey: `k${n}` }))
  await idle.send(name, batch, { signal: never })
  const [running] = await take(await subscribe(idle, name), 1)
  const from = await subscribe(busy, name)
  const laneOf = (one: (typeof batch)[number]): string => laneFor(place, one).queue
  const others = batch.filter((one) => laneOf(one) !== running?.lane)
  const done = new Set<string>()
  await until('all in the other lanes', async () => {
    const came = await from.receive({ max: 4, waitMs: 200, signal: never })
    for (const { envelope: one } of came) done.add(one.id)
    await from.settle(came.map(acked))
    return others.every(({ id }) => done.has(id))
  })
  assert.equal(done.size, others.length)
  assert.equal(running?.claim.lost.aborted, false)
})

test('What waits with a worker goes back before the broker takes it back, and a failed message waits no longer than that.', {
  skip,
}, async () => {
  const name = fresh(1)
  const transport = await opened({ lanes: 1, consumerTimeoutMs: 3_000 })
  await transport.topology.ensure([spec(name)], never)
  const batch = ['a', 'a', 'b'].map((orderingKey) => envelope({ orderingKey }))
  const [first, second, third] = batch.map(({ id }) => id)
  await transport.send(name, batch, { signal: never })
  const from = await subscribe(transport, name)
  const came = await take(from, 2)
  assert.deepEqual(
    came.map(({ envelope: { id } }) => id),
    [first, third],
  )
  const startedAt = Date.now()
  const day = { as: 'released', delayMs: 86_400_000, counted: false } as const
  await from.settle(came.map((delivery, at) => (at === 0 ? { ...day, delivery } : acked(delivery))))
  const [again] = await take(from, 1)
  assert.equal(again?.envelope.id, first)
  assert.ok(Date.now() - startedAt >= 1_450, `came after ${Date.now() - startedAt} ms`)
  if (again) await from.settle([acked(again)])
  // The second one is in hand, and nobody asks for it.
  await withChannel(url, (channel) =>
    until(
      'it is back',
      async () => (await channel.checkQueue(`${name}.lane.0`)).messageCount === 1,
    ),
  )
  const [back] = await take(from, 1)
  assert.deepEqual([back?.envelope.id, back?.deliveries], [second, 2])
})
