import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Subscription } from '../../src/transport/transport.ts'
import { type Bench, open, signal, subscribeTo } from './redis-bench.ts'
import { NO_REDIS, redisServers } from './redis-servers.ts'
import { until } from './until.ts'

const servers = redisServers()
if (servers.length === 0) test('redis, foreign entries', { skip: NO_REDIS }, () => {})

/** Fields that a producer who knows nothing of us may write, with names that we use, too. */
const FIELDS = ['id', '7', 'at', 'noon', 'deliveries', 'many', 'note', 'a "b"/\n', 'note', 'last']
const PAYLOAD = { id: '7', at: 'noon', deliveries: 'many', note: 'last' }

for (const { name, url } of servers) {
  describe(`${name}, entries of other producers`, () => {
    test('What an entry without a body has in its fields is there at every handing out, whatever brought it back.', () =>
      everyWayBack(url))
    test('Two entries with the same field `id` and no body are two messages.', () => sameField(url))
    test('With a body the field `id` names the message, wherever it stands, and nothing is left of it.', () =>
      namedAnywhere(url))
    test('A dead entry keeps its fields, on the shelf and after the redrive.', () =>
      deadFields(url))
  })
}

async function add(bench: Bench, ...fields: readonly string[]): Promise<string> {
  return String(await bench.raw.sendCommand(['XADD', bench.key('ready'), '*', ...fields]))
}

async function receiveOne(subscription: Subscription): Promise<Delivery> {
  const found: Delivery[] = []
  await until('a message', async () => {
    found.push(...(await subscription.receive({ max: 1, waitMs: 200, signal })))
    return found.length > 0
  })
  const [delivery] = found
  assert.ok(delivery)
  return delivery
}

function payload({ envelope: { body } }: Pick<Delivery, 'envelope'>): unknown {
  return JSON.parse(Buffer.from(body).toString())
}

async function everyWayBack(url: string): Promise<void> {
  const bench = await open(url)
  const id = await add(bench, ...FIELDS)
  const first = await subscribeTo(bench.transport, 300)
  const seen: Delivery[] = []
  const take = async (from: Subscription): Promise<Delivery> => {
    const delivery = await receiveOne(from)
    seen.push(delivery)
    return delivery
  }
  const released = { as: 'released', delivery: await take(first), counted: true } as const
  await first.settle([{ ...released, delayMs: 0 }])
  await first.settle([{ ...released, delivery: await take(first), delayMs: 5 }])
  // Nobody settles this one: its lease ends.
  await take(first)
  await take(first)
  await first.close()
  const second = await subscribeTo(bench.transport)
  const last = await take(second)
  assert.deepEqual(
    seen.map((delivery) => [delivery.envelope.id, delivery.deliveries]),
    [1, 2, 3, 4, 5].map((deliveries) => [id, deliveries]),
  )
  for (const delivery of seen) assert.deepEqual(payload(delivery), PAYLOAD)
  assert.ok(seen.every(({ sentAt }) => sentAt === seen[0]?.sentAt && Number.isFinite(sentAt)))
  assert.deepEqual(await second.settle([{ as: 'acked', delivery: last }]), [{ ok: true }])
  await nothingLeft(bench)
}

async function sameField(url: string): Promise<void> {
  const bench = await open(url)
  const ids = [await add(bench, 'id', '7', 'n', '1'), await add(bench, 'id', '7', 'n', '2')]
  const first = await subscribeTo(bench.transport)
  const held = await first.receive({ max: 5, waitMs: 1_000, signal })
  assert.deepEqual(
    held.map(({ envelope }) => envelope.id),
    ids,
  )
  await first.close()
  const second = await subscribeTo(bench.transport)
  const again = await second.receive({ max: 5, waitMs: 1_000, signal })
  assert.deepEqual(
    again.map(({ envelope }) => envelope.id),
    ids,
  )
  assert.deepEqual(again.map(payload), [
    { id: '7', n: '1' },
    { id: '7', n: '2' },
  ])
  await second.settle(again.map((delivery) => ({ as: 'acked', delivery })))
  await nothingLeft(bench)
}

async function namedAnywhere(url: string): Promise<void> {
  const bench = await open(url)
  await add(bench, 'body', 'one', 'id', 'order-1')
  await add(bench, 'id', 'order-2', 'trace', 'x', 'body', 'two')
  const subscription = await subscribeTo(bench.transport)
  const held = await subscription.receive({ max: 5, waitMs: 1_000, signal })
  const told = held.map(({ envelope: { id, body } }) => [id, Buffer.from(body).toString()])
  assert.deepEqual(told, [
    ['order-1', 'one'],
    ['order-2', 'two'],
  ])
  await subscription.settle(held.map((delivery) => ({ as: 'acked', delivery })))
  await nothingLeft(bench)
}

async function deadFields(url: string): Promise<void> {
  const bench = await open(url)
  const id = await add(bench, ...FIELDS)
  const subscription = await subscribeTo(bench.transport)
  const delivery = await receiveOne(subscription)
  const death = { as: 'dead', delivery, reason: 'no', errorClass: 'permanent' } as const
  await subscription.settle([death])
  const { shelf } = bench.transport
  const letter = await shelf?.get('q', id)
  assert.ok(letter)
  assert.deepEqual(payload(letter), PAYLOAD)
  assert.deepEqual(await shelf?.redrive('q', [id], { actor: 'a', reason: 'r' }), [id])
  const back = await receiveOne(subscription)
  assert.deepEqual([back.envelope.id, payload(back)], [id, PAYLOAD])
  await subscription.settle([{ as: 'acked', delivery: back }])
  await nothingLeft(bench)
}

/** What is left in `ids` would be taken for a message whose entry is gone, and be buried. */
async function nothingLeft({ raw, key, transport }: Bench): Promise<void> {
  assert.equal(await raw.sendCommand(['HLEN', key('ids')]), 0)
  assert.equal(await raw.sendCommand(['XLEN', key('ready')]), 0)
  assert.equal((await transport.browse?.gauge('q'))?.dead, 0)
}
