import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { RabbitmqSettings } from 'millrace/rabbitmq'
import { codeOf } from '../../src/conformance/acts.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Transport } from '../../src/transport/transport.ts'
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
} from './rabbitmq-subjects.ts'
import { until } from './until.ts'

const url = backendUrl('rabbitmq')

const skip = url === undefined
const address = url ?? ''
const used: string[] = []
const name = (what: string): string => {
  used.push(freshName(what))
  return used.at(-1) ?? ''
}
const opened: Transport[] = []
const open = async (settings: RabbitmqSettings = {}): Promise<Transport> => {
  const transport = await openRabbit({ url: address, ...settings })
  opened.push(transport)
  return transport
}
after(async () => {
  for (const transport of opened) await transport.close()
  if (skip) return
  await withChannel(address, async (channel) => {
    for (const queue of used) await channel.deleteQueue(queue)
  })
})

test('A queue that was deleted under a running producer refuses as notFound what was stored before.', {
  skip,
}, async () => {
  const transport = await open()
  const queue = name('deleted')
  await ensure(transport, queue)
  const send = async () =>
    (await transport.send(queue, [envelope(), envelope()], { signal: never })).map(codeOf)
  assert.deepEqual(await send(), ['ok', 'ok'])
  await withChannel(address, (channel) => channel.deleteQueue(queue))
  assert.deepEqual(await send(), ['notFound', 'notFound'])
  await transport.close()
})

test('A delayed message whose queue was deleted meanwhile is kept aside and holds up no other.', {
  skip,
}, async () => {
  const transport = await open({ delayPrefix: 'test-ladder' })
  const [gone, stays] = [name('gone'), name('stays')]
  await ensure(transport, gone, stays)
  const [lost, next] = [envelope({ delayMs: 200 }), envelope({ delayMs: 200 })]
  await withChannel(address, async (channel) => {
    await channel.purgeQueue('test-ladder.stranded')
    await transport.send(gone, [lost], { signal: never })
    await channel.deleteQueue(gone)
    await transport.send(stays, [next], { signal: never })
    const [came] = await take(await subscribe(transport, stays), 1)
    assert.equal(came?.envelope.id, next.id)
    await until('the stranded message', async () => {
      const stranded = await channel.get('test-ladder.stranded', { noAck: true })
      return stranded !== false && stranded.properties.messageId === lost.id
    })
  })
  await transport.close()
})

test('Delays of many lengths end in their order, none of them early, and the longest is taken.', {
  skip,
}, async () => {
  const transport = await open()
  const queue = name('delays')
  await ensure(transport, queue)
  const longest = transport.traits.delay === 'none' ? 0 : transport.traits.delay.maxMs
  const delays = [longest, 900, 65, 1_300, 64, 500, 1]
  const sentAt = Date.now()
  const sent = delays.map((delayMs) => envelope({ delayMs }))
  const answers = await transport.send(queue, sent, { signal: never })
  assert.deepEqual(
    answers.map(codeOf),
    delays.map(() => 'ok'),
  )
  const from = await subscribe(transport, queue)
  const order: number[] = []
  await until('all but the longest', async () => {
    for (const { envelope: came } of await from.receive({ max: 10, waitMs: 50, signal: never })) {
      const delayMs = delays[sent.findIndex((one) => one.id === came.id)] ?? 0
      assert.ok(Date.now() - sentAt >= delayMs, `${delayMs} came after ${Date.now() - sentAt} ms`)
      order.push(delayMs)
    }
    return order.length === delays.length - 1
  })
  assert.deepEqual(order.slice(-3), [500, 900, 1_300])
  const beyond = await transport.send(queue, [envelope({ delayMs: longest + 1 })], {
    signal: never,
  })
  assert.deepEqual(beyond.map(codeOf), ['invalid'])
  await transport.close()
})

test('A bare message of another program arrives with its message-id, its headers as text, its bytes as they are.', {
  skip,
}, async () => {
  const transport = await open()
  const queue = name('foreign')
  await ensure(transport, queue)
  await withChannel(address, async (channel) => {
    const headers = { count: 7, deep: { a: [1] }, bytes: Buffer.from('b'), yes: true }
    channel.sendToQueue(queue, Buffer.from([0, 255]), {
      messageId: 'order-1',
      timestamp: 1_000,
      headers,
    })
    channel.sendToQueue(queue, Buffer.from(''), { messageId: 'with a space' })
    channel.sendToQueue(queue, Buffer.from('x'))
    const cloudEvent = {
      cloudEvents_id: 'e-1',
      cloudEvents_source: '/shop',
      cloudEvents_partitionkey: 'c',
    }
    channel.sendToQueue(queue, Buffer.from('x'), { headers: cloudEvent })
    await channel.checkQueue(queue)
  })
  const [first, spaced, bare, event] = await take(await subscribe(transport, queue), 4)
  assert.equal(first?.envelope.id, 'order-1')
  assert.equal(first?.sentAt, 1_000_000)
  assert.deepEqual([...(first?.envelope.body ?? [])], [0, 255])
  assert.deepEqual(first?.envelope.headers, {
    count: '7',
    deep: '{"a":[1]}',
    bytes: 'b',
    yes: 'true',
  })
  assert.match(spaced?.envelope.id ?? '', /^sha256-[0-9a-f]{64}$/)
  assert.match(bare?.envelope.id ?? '', /^[0-9a-f-]{36}$/)
  assert.equal(event?.envelope.id, 'e-1')
  assert.equal(event?.envelope.orderingKey, 'c')
  assert.deepEqual(event?.envelope.headers, { cloudEvents_source: '/shop' })
  await transport.close()
})

test('Headers that the broker would obey or overwrite, or that do not fit into a frame, are refused one by one.', {
  skip,
}, async () => {
  const transport = await open()
  const queue = name('headers')
  await ensure(transport, queue)
  const bad = [
    { CC: 'elsewhere' },
    { 'x-death': 'no' },
    { cloudEvents_id: 'other' },
    { [`${'n'.repeat(256)}`]: '' },
    { large: 'x'.repeat(70_000) },
  ]
  const batch = [envelope(), ...bad.map((headers) => envelope({ headers })), envelope()]
  const sent = await transport.send(queue, batch, { signal: never })
  assert.deepEqual(sent.map(codeOf), [
    'ok',
    'invalid',
    'invalid',
    'invalid',
    'invalid',
    'tooLarge',
    'ok',
  ])
  await transport.close()
})

test('A queue that is full and rejects answers full; nothing of it is dropped.', {
  skip,
}, async () => {
  const transport = await open()
  const queue = name('full')
  const args = { 'x-queue-type': 'quorum', 'x-max-length': 1, 'x-overflow': 'reject-publish' }
  await withChannel(address, (channel) => channel.assertQueue(queue, { arguments: args }))
  await ensure(transport, queue)
  await until('a rejected message', async () => {
    const [sent] = await transport.send(queue, [envelope()], { signal: never })
    return sent !== undefined && codeOf(sent) === 'full'
  })
  await transport.close()
})

test('A subscription holds no more than maxInFlight, and resize changes that.', {
  skip,
}, async () => {
  const transport = await open()
  const queue = name('prefetch')
  await ensure(transport, queue)
  await transport.send(
    queue,
    Array.from({ length: 20 }, () => envelope()),
    { signal: never },
  )
  const depth = async () => (await transport.browse?.gauge(queue))?.depth
  const from = await subscribe(transport, queue, 3)
  const held = await take(from, 3)
  assert.equal(await depth(), 17)
  assert.deepEqual(await from.receive({ max: 5, waitMs: 100, signal: never }), [])
  from.resize(6)
  await take(from, 6)
  assert.equal(await depth(), 11)
  assert.deepEqual(
    (await from.settle(held.map((delivery) => ({ as: 'acked', delivery }) as const))).map(codeOf),
    ['ok', 'ok', 'ok'],
  )
  await from.close()
  await until('what was held', async () => (await depth()) === 17)
  await transport.close()
})

test('What was pushed and nobody asks for goes back to the queue.', { skip }, async () => {
  const transport = await open()
  const queue = name('unasked')
  await ensure(transport, queue)
  await transport.send(
    queue,
    Array.from({ length: 5 }, () => envelope()),
    { signal: never },
  )
  const [held] = await take(await subscribe(transport, queue), 1)
  await until('the other four', async () => (await transport.browse?.gauge(queue))?.depth === 4)
  assert.equal(held?.claim.lost.aborted, false)
  await transport.close()
})

test('A queue is published to by its exchange and routing key, where it has some.', {
  skip,
}, async () => {
  const [queue, physical, exchange] = ['orders', name('physical'), freshName('exchange')]
  await withChannel(address, (channel) =>
    channel.assertExchange(exchange, 'topic', { durable: false }),
  )
  const names = { [queue]: { queue: physical, exchange, routingKey: 'shop.order' } }
  const transport = await open({ queues: names })
  await ensure(transport, queue)
  const [now, later] = [envelope(), envelope({ delayMs: 100 })]
  const sent = await transport.send(queue, [now, later], { signal: never })
  assert.deepEqual(sent.map(codeOf), ['ok', 'ok'])
  const came = await take(await subscribe(transport, queue), 2)
  assert.deepEqual(
    came.map((one) => one.envelope.id),
    [now.id, later.id],
  )
  await withChannel(address, (channel) => channel.deleteExchange(exchange))
  await transport.close()
})

test('Each message has its own headers and none of another one, whatever they are called and however many there are.', {
  skip,
}, async () => {
  const queue = name('headers')
  const transport = await open()
  await ensure(transport, queue)
  const many = (from: number): Record<string, string> =>
    Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`own-${from + at}`, `${at}`]))
  const all: readonly Partial<Envelope>[] = [
    { headers: { first: '1', both: 'one' }, idempotencyKey: 'key' },
    { headers: {} },
    { headers: { both: 'two', constructor: 'c', toString: 't' } },
    { headers: { hasOwnProperty: 'h' } },
    ...Array.from({ length: 8 }, (_, at) => ({ headers: many(60 * at) })),
    { headers: { first: '2' } },
  ]
  const batch = all.map((fields) => envelope(fields))
  await transport.send(queue, batch, { signal: never })
  const came = await take(await subscribe(transport, queue), batch.length)
  const said = ({ id, headers, idempotencyKey }: Envelope) => ({
    ...{ id, idempotencyKey },
    headers: Object.entries(headers).toSorted(([one], [other]) => (one < other ? -1 : 1)),
  })
  assert.deepEqual(
    came.map((one) => said(one.envelope)),
    batch.map(said),
  )
  await transport.close()
})

test('A handler that may take longer than the broker waits for an ack is refused at its start.', {
  skip,
}, async () => {
  for (const topology of ['create', 'none'] as const) {
    const transport = await open({ consumerTimeoutMs: 50_000, topology })
    const slow = { name: name('slow'), owner: 'o', maxDepth: undefined }
    await assert.rejects(
      transport.topology.ensure([{ ...slow, handlerTimeoutMs: 45_000 }], never),
      /a handler may take 45000 ms.*consumer_timeout.*pass consumerTimeoutMs/,
    )
    await transport.close()
  }
})

test('A slow worker gives back once what it cannot take, and then is pushed no more than it asks for.', {
  skip,
}, async () => {
  const transport = await open()
  const queue = name('slow worker')
  await ensure(transport, queue)
  await transport.send(
    queue,
    Array.from({ length: 8 }, () => envelope()),
    { signal: never },
  )
  const depth = async () => (await transport.browse?.gauge(queue))?.depth
  const from = await subscribe(transport, queue, 8)
  const counts: (number | undefined)[] = []
  for (let left = 7; left >= 0; left--) {
    const [delivery] = await take(from, 1)
    counts.push(delivery?.deliveries)
    // Nothing is settled: each hand that gets free asks for one more.
    await until(`${left} for others`, async () => (await depth()) === left)
  }
  assert.deepEqual(counts, [1, 2, 2, 2, 2, 2, 2, 2])
})
