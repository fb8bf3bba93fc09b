import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type VirtualClock, virtualClock } from 'millrace/testing'
import { hold } from '../../src/layers/hold.ts'
import { journals } from '../../src/layers/journals.ts'
import { settleEach } from '../../src/layers/settle-each.ts'
import type { Clock } from '../../src/model/clock.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import type { Subscription } from '../../src/transport/transport.ts'
import { type MemoryLog, memoryLog } from './memory-log.ts'

const signal = new AbortController().signal

interface Stage {
  readonly time: VirtualClock
  readonly log: MemoryLog
  readonly subscribe: () => Promise<Subscription>
}

/** Each message as `key` and number: `a1`. Keys `a` and `d` share a lane of three. */
async function stage(
  lanes: number,
  messages: readonly string[],
  clockOf = (time: VirtualClock): Clock => time,
): Promise<Stage> {
  const time = virtualClock()
  const log = memoryLog(time, lanes)
  const context = { signal, clock: time, random: () => 0.5, logger: silentLogger } as const
  const store = await memoryStore().connect({ ...context, migrate: 'auto' })
  const transport = journals(hold(settleEach(log.connect()), clockOf(time)), store)
  await transport.topology.ensure([{ name: 'q', owner: 'o', maxDepth: undefined }], signal)
  const batch = messages.map((id) => ({
    ...{ id, orderingKey: id[0] ?? '', headers: {}, priority: 0 },
    body: new TextEncoder().encode(id),
  }))
  await transport.send('q', batch, { signal })
  const subscribe = (): Promise<Subscription> =>
    transport.subscribe('q', { group: 'g', leaseMs: 1_000, maxInFlight: 100 })
  return { time, log, subscribe }
}

const receive = (from: Subscription): Promise<readonly Delivery[]> =>
  from.receive({ max: 100, waitMs: 0, signal })
const idsOf = (batch: readonly Delivery[]): readonly string[] =>
  batch.map(({ envelope }) => envelope.id)
const acked = (delivery: Delivery) => ({ as: 'acked', delivery }) as const
const failed = (delivery: Delivery, delayMs: number) =>
  ({ as: 'released', delivery, delayMs, counted: true }) as const

test('Messages of one key run one after the other, and a failed one comes before those behind it.', async () => {
  const { time, subscribe } = await stage(3, ['a1', 'a2', 'b1', 'a3', 'b2'])
  const subscription = await subscribe()
  const effects: string[] = []
  let fails = 1
  for (let round = 0; round < 20 && effects.length < 5; round++) {
    for (const delivery of await receive(subscription)) {
      const { id } = delivery.envelope
      if (id === 'a2' && fails-- > 0) await subscription.settle([failed(delivery, 500)])
      else {
        effects.push(id)
        if (id === 'a2') assert.equal(delivery.history.counted, 1)
        if (id === 'a3') assert.equal(delivery.history.counted, 0)
        await subscription.settle([acked(delivery)])
      }
    }
    await time.advance(100)
  }
  assert.deepEqual(
    effects.filter((id) => id[0] === 'a'),
    ['a1', 'a2', 'a3'],
  )
  assert.deepEqual(
    effects.filter((id) => id[0] === 'b'),
    ['b1', 'b2'],
  )
})

test('A clock that is set back while a message is held does not make it wait longer, nor does one that stands before the timer.', async () => {
  let behindMs = 0
  const { time, subscribe } = await stage(1, ['a1', 'a2'], (whole) => ({
    now: () => whole.now() - behindMs,
    after: (ms, run) => whole.after(ms, run),
  }))
  for (const wrongMs of [1, 3_600_000]) {
    const subscription = await subscribe()
    const first = (await receive(subscription))[0]
    assert.ok(first)
    await subscription.settle([failed(first, 500)])
    behindMs = wrongMs
    const waiting = subscription.receive({ max: 1, waitMs: 60_000, signal })
    await time.advance(500)
    const again = (await waiting)[0]
    assert.equal(again?.envelope.id, first.envelope.id)
    await subscription.settle([acked(again as Delivery)])
    await subscription.close()
  }
})

test('A held lane waits as a whole, and takes no room of the others.', async () => {
  const { time, log, subscribe } = await stage(3, [
    'a1',
    ...Array.from({ length: 500 }, (_, at) => `d${at}`),
    'b1',
    'b2',
  ])
  const subscription = await subscribe()
  const [first] = await subscription.receive({ max: 1, waitMs: 0, signal })
  assert.ok(first)
  assert.equal(first.envelope.id, 'a1')
  await subscription.settle([failed(first, 60_000)])
  const others = [...(await receive(subscription)), ...(await receive(subscription))]
  assert.deepEqual(idsOf(others), ['b1'])
  await subscription.settle(others.map(acked))
  assert.deepEqual(idsOf(await receive(subscription)), ['b2'])
  await time.advance(60_000)
  assert.deepEqual(idsOf(await receive(subscription)), ['a1'])
  assert.ok(log.committed('q').some(([position]) => position === 0))
})

test('The next holder knows how often a held message was tried.', async () => {
  const { subscribe } = await stage(1, ['a1', 'a2'])
  const first = await subscribe()
  for (const delivery of await receive(first)) await first.settle([failed(delivery, 1_000)])
  await first.close()
  const second = await subscribe()
  const [again] = await receive(second)
  assert.equal(again?.envelope.id, 'a1')
  assert.equal(again.history.counted, 1)
  await second.settle([acked(again)])
  await second.close()
  assert.deepEqual(idsOf(await receive(await subscribe())), ['a2'])
})
