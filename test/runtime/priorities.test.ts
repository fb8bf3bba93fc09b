import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, PermanentError } from 'millrace'
import { memory } from 'millrace/memory'
import { memoryStore } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import type { AnyQueue } from '../../src/runtime/queue.ts'
import type { Traits } from '../../src/transport/traits.ts'
import type { Connector } from '../../src/transport/transport.ts'
import { bare } from '../layers/bare.ts'

const basics = { owner: 'team-a', payload: z.string() }
const orders = defineQueue({ ...basics, name: 'orders', priorities: 3, ageingMs: 10_000 })
const plain = defineQueue({ ...basics, name: 'plain' })

/** A broker without priorities, and perhaps with more than a bare one can. */
function broker(more: Partial<Traits> = {}): Connector {
  const below = memory()
  return {
    name: 'bare',
    connect: async (context) => bare(await below.connect(context), { priorities: 1, ...more }),
  }
}

async function appOn(t: TestContext, transport: Connector, ...more: AnyQueue[]) {
  const clock = virtualClock()
  const options = {
    queues: [orders, plain, ...more],
    clock,
    logger: silentLogger,
    store: memoryStore(),
  }
  const app = await createMillrace({ ...options, transport })
  t.after(async () => {
    const closing = app.close()
    await clock.advance(31_000)
    await closing
  })
  return { app, clock }
}

test('A queue that names its levels has priorities on a broker without, and what fails, is late or dies stays on its level.', async (t) => {
  const { app, clock } = await appOn(t, broker())
  await app.send(orders, 'low')
  await app.send(orders, 'normal', { priority: 1 })
  await app.send(orders, 'poison', { priority: 2 })
  await app.send(orders, 'urgent', { priority: 2 })
  await app.send(orders, 'late', { priority: 2, delayMs: 3_600_000 })
  const again = { dedupeKey: 'once' }
  assert.equal((await app.send(orders, 'once', { ...again, priority: 1 })).duplicate, false)
  assert.equal((await app.send(orders, 'once', { ...again, priority: 2 })).duplicate, true)
  assert.equal((await app.admin.stats(orders)).depth, 5)

  const seen: string[] = []
  let isBroken = true
  app.work(
    orders,
    ({ payload, attempt }) => {
      seen.push(payload)
      if (payload === 'poison' && isBroken) throw new PermanentError('no')
      if (payload === 'urgent' && attempt === 1) throw new Error('try again')
    },
    { concurrency: 1 },
  )
  await app.start()
  await clock.advance(5_000)
  assert.deepEqual(seen, ['poison', 'urgent', 'normal', 'once', 'low', 'urgent'])
  const { items } = await app.admin.deadLetters.list(orders, {})
  assert.equal(items.length, 1)
  const letter = await app.admin.messages.get(orders, items[0]?.id ?? '')
  assert.equal(letter?.priority, 2)
  isBroken = false
  await app.admin.deadLetters.redrive(orders, { ids: items.map(({ id }) => id) })
  await clock.advance(5_000)
  assert.equal(seen.at(-1), 'poison')
  await clock.advance(3_600_000)
  assert.equal(seen.at(-1), 'late')
  const { depth, inFlight, scheduled } = await app.admin.stats(orders)
  assert.deepEqual([depth, inFlight, scheduled], [0, 0, 0])
})

test('A priority above the levels of the queue is refused, and one on a queue without.', async (t) => {
  for (const transport of [broker(), memory()]) {
    const { app } = await appOn(t, transport)
    await assert.rejects(app.send(orders, 'a', { priority: 3 }), {
      code: 'MILLRACE_INVALID_OPTIONS',
      message:
        'send to queue "orders": priority: the queue has 3 levels, got 3; expected at most 2',
    })
  }
  const { app } = await appOn(t, broker())
  await assert.rejects(app.send(plain, 'a', { priority: 1 }), {
    message:
      'send to queue "plain": priority: the queue has no priorities on bare, got 1; leave it out, or say with priorities how many levels it has',
  })
})

async function refusals(transport: Connector, ...queues: AnyQueue[]): Promise<readonly string[]> {
  const error: unknown = await createMillrace({ transport, queues, store: memoryStore() }).then(
    (app) => app.close(),
    (cause: unknown) => cause,
  )
  const { problems } = Object(error)
  assert.ok(Array.isArray(problems), String(error))
  return problems
}

test('A watermark keeps room for what is urgent, and is refused where it would do nothing.', async (t) => {
  const capacity = { maxDepth: 4, watermark: 0.5 }
  const marked = defineQueue({ ...basics, name: 'marked', priorities: 2, capacity })
  const { app } = await appOn(t, broker(), marked)
  await app.sendBatch(marked, ['a', 'b'])
  const full = { code: 'MILLRACE_QUEUE_FULL', message: /full for priority 0: 2 messages/ }
  await assert.rejects(app.send(marked, 'late'), full)
  await app.sendBatch(marked, ['c', 'd'], { priority: 1 })
  await assert.rejects(app.send(marked, 'urgent', { priority: 1 }), {
    message: /"marked" is full: 4 messages/,
  })
  assert.deepEqual(await refusals(memory(), marked), [
    'queue "marked": capacity.watermark: memory counts all priorities together; use whenFull "shed", which removes the lowest first',
  ])
  const flat = defineQueue({ ...basics, name: 'flat', capacity })
  assert.deepEqual(await refusals(broker({ capacity: 'sampled' }), flat), [
    'queue "flat": capacity.watermark: the queue has no levels of priority to refuse by; say with priorities how many it has, or leave the watermark out',
  ])
  for (const watermark of [0, 0.05, 1.1, Number.NaN, '0.5']) {
    const wrong: typeof capacity = { maxDepth: 4, watermark: watermark as number }
    assert.throws(() => defineQueue({ ...basics, name: 'wrong', capacity: wrong }), {
      message: /capacity\.watermark: expected a number from 0\.1 to 1, got /,
    })
  }
  const both = { ...capacity, whenFull: 'wait' as const, waitMs: 5 }
  assert.throws(() => defineQueue({ ...basics, name: 'both', capacity: both }), {
    message: /capacity\.watermark: only with whenFull "reject"/,
  })
})

test('Levels that nobody can keep are refused at start, each with its reason.', async () => {
  const elsewhere = 'use memory, SQLite, Postgres or Redis as the transport'
  assert.deepEqual(await refusals(broker({ order: 'perKey', delay: 'none' }), orders), [
    `queue "orders": priorities: bare keeps its messages in the order sent; leave it out, or ${elsewhere}`,
  ])
  assert.deepEqual(
    await refusals(
      broker({ dedupe: { windowMs: 'any' }, keepsHistory: true, deadLetters: 'native' }),
      orders,
    ),
    [
      `queue "orders": priorities: bare remembers keys for each of its queues, not for all levels together; leave it out, or ${elsewhere}`,
    ],
  )
  const ageing = defineQueue({ ...basics, name: 'ageing', ageingMs: 1_000 })
  assert.deepEqual(await refusals(broker(), ageing, orders), [
    'queue "ageing": ageingMs: the queue has no priorities that could age; leave it out, or say with priorities how many levels it has',
  ])
  const taken = defineQueue({ ...basics, name: 'orders-p2' })
  assert.deepEqual(await refusals(broker(), orders, taken), [
    'queue "orders": priorities: a level of it is in orders-p2, which is a queue too; rename one of them',
  ])
  const ordered = defineQueue({
    ...{ ...basics, name: 'ordered', priorities: 2 },
    ...{ orderingKey: (payload: string) => payload, onDead: 'continue' },
  })
  const found = await refusals(broker(), ordered)
  assert.ok(
    found.includes(
      `queue "ordered": priorities: bare has a queue for each level, so a message of a higher one would overtake its key; leave out one of priorities and orderingKey, or ${elsewhere}`,
    ),
    found.join('\n'),
  )
})

test('On a backend with priorities of its own the levels are a bound, and names that levels would have elsewhere are free.', async (t) => {
  const { app, clock } = await appOn(t, memory())
  await app.send(orders, 'low')
  await app.send(orders, 'urgent', { priority: 2 })
  const seen: string[] = []
  app.work(orders, ({ payload }) => void seen.push(payload), { concurrency: 1 })
  await app.start()
  await clock.advance(1_000)
  assert.deepEqual(seen, ['urgent', 'low'])
})
