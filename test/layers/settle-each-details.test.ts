import assert from 'node:assert/strict'
import { test } from 'node:test'
import { virtualClock } from 'millrace/testing'
import { settleEach } from '../../src/layers/settle-each.ts'
import type { Delivery, Settled } from '../../src/model/delivery.ts'
import type { Subscription } from '../../src/transport/transport.ts'
import { memoryLog } from './memory-log.ts'

const signal = new AbortController().signal
const bytes = new TextEncoder().encode('{}')

async function stage(lanes: number, messages: readonly (readonly [id: string, key: string])[]) {
  const log = memoryLog(virtualClock(), lanes)
  const transport = settleEach(log.connect())
  await transport.topology.ensure([{ name: 'q', owner: 'o', maxDepth: undefined }], signal)
  const batch = messages.map(([id, orderingKey]) => {
    return { id, orderingKey, body: bytes, headers: {}, priority: 0 }
  })
  await transport.send('q', batch, { signal })
  const subscribe = (): Promise<Subscription> =>
    transport.subscribe('q', { group: 'g', leaseMs: 1_000, maxInFlight: 100 })
  return { log, subscribe }
}

const receive = (from: Subscription): Promise<readonly Delivery[]> =>
  from.receive({ max: 100, waitMs: 0, signal })
const ack = (from: Subscription, ...batch: readonly Delivery[]): Promise<readonly Settled[]> =>
  from.settle(batch.map((delivery) => ({ as: 'acked', delivery })))
const idsOf = (batch: readonly Delivery[]): readonly string[] =>
  batch.map(({ envelope }) => envelope.id)

const ten = Array.from({ length: 10 }, (_, at) => [`m${at + 1}`, 'a'] as const)

test('A message that is stuck holds the position, and only it runs again with the next holder.', async () => {
  const { log, subscribe } = await stage(1, ten)
  const first = await subscribe()
  const [, ...others] = await receive(first)
  for (const outcome of await ack(first, ...others.reverse())) assert.equal(outcome.ok, true)
  assert.deepEqual(log.committed('q')[0]?.[0], 0)
  await first.close()
  const second = await subscribe()
  const again = await receive(second)
  assert.deepEqual(idsOf(again), ['m1'])
  await ack(second, ...again)
  assert.deepEqual(log.committed('q'), [[10, '']])
})

test('A batch of several lanes moves each lane to its own first unfinished message.', async () => {
  const { log, subscribe } = await stage(3, [
    ['a1', 'a'],
    ['a2', 'a'],
    ['b1', 'b'],
    ['b2', 'b'],
    ['c1', 'c'],
  ])
  const subscription = await subscribe()
  const batch = await receive(subscription)
  await ack(subscription, ...batch.filter(({ envelope }) => !['a2', 'b1'].includes(envelope.id)))
  const lanes = log.committed('q').map(([position]) => position)
  assert.deepEqual(lanes.toSorted(), [0, 1, 1])
  await subscription.close()
  assert.deepEqual(idsOf(await receive(await subscribe())).toSorted(), ['a2', 'b1'])
})

test('An ack whose commit failed can be repeated, and is no longer open to a release.', async () => {
  const { log, subscribe } = await stage(1, ten.slice(0, 2))
  const subscription = await subscribe()
  const [delivery] = await receive(subscription)
  assert.ok(delivery)
  log.failCommits(1)
  const [failed] = await ack(subscription, delivery)
  assert.equal(failed?.ok === false && failed.fault.code, 'unavailable')
  const release = { as: 'released', delivery, delayMs: 0, counted: false } as const
  const [released] = await subscription.settle([release])
  assert.equal(released?.ok === false && released.fault.code, 'lost')
  assert.deepEqual(await ack(subscription, delivery), [{ ok: true }])
  const [twice] = await ack(subscription, delivery)
  assert.equal(twice?.ok === false && twice.fault.code, 'lost')
})

test('What was given back comes again in its order, and not while its lane is paused.', async () => {
  const { subscribe } = await stage(1, ten.slice(0, 3))
  const subscription = await subscribe()
  const batch = await receive(subscription)
  await subscription.settle(
    batch
      .toReversed()
      .map((delivery) => ({ as: 'released', delivery, delayMs: 0, counted: false })),
  )
  subscription.pauseLane?.('0', true)
  assert.deepEqual(await receive(subscription), [])
  subscription.pauseLane?.('0', false)
  assert.deepEqual(idsOf(await receive(subscription)), ['m1', 'm2', 'm3'])
})

test('What was given back is handed out as it came, whatever was made of it above.', async () => {
  const { subscribe } = await stage(1, ten.slice(0, 1))
  const subscription = await subscribe()
  const [came] = await receive(subscription)
  assert.ok(came)
  const delivery = { ...came, alone: true, envelope: { ...came.envelope, headers: { x: '1' } } }
  await subscription.settle([{ as: 'released', delivery, delayMs: 0, counted: false }])
  const [again] = await receive(subscription)
  assert.deepEqual(again, came)
})

test('Only the first messages of a lane may have been in the hands of a holder before.', async () => {
  const many = Array.from({ length: 600 }, (_, at) => [`m${at + 1}`, 'a'] as const)
  const { subscribe } = await stage(1, many)
  const subscription = await subscribe()
  const all: Delivery[] = []
  while (all.length < 600) all.push(...(await receive(subscription)))
  assert.equal(
    all.findIndex(({ deliveries }) => deliveries === 1),
    500,
  )
  const last = all[599]
  assert.ok(last)
  await subscription.settle([{ as: 'released', delivery: last, delayMs: 0, counted: false }])
  const [again] = await receive(subscription)
  assert.equal(again?.deliveries, 2)
})
