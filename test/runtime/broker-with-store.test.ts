import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, PermanentError } from 'millrace'
import { memory } from 'millrace/memory'
import { memoryStore } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { pause } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Connector, Transport } from '../../src/transport/transport.ts'
import { bare } from '../layers/bare.ts'
import { closeNow } from './stage.ts'

const orders = defineQueue({
  name: 'orders',
  owner: 'team-a',
  payload: z.string(),
  retry: { attempts: 3, baseMs: 1_000 },
})

function bareBroker(): Connector {
  const below = memory()
  return { name: 'bare', connect: async (context) => bare(await below.connect(context)) }
}

async function appOn(t: TestContext) {
  const clock = virtualClock()
  const options = { queues: [orders], clock, logger: silentLogger }
  const app = await createMillrace({ ...options, transport: bareBroker(), store: memoryStore() })
  t.after(async () => {
    const closing = app.close()
    await clock.advance(31_000)
    await closing
  })
  return { app, clock }
}

test('a broker that lacks much is refused without a store, all at once', async () => {
  const app = createMillrace({ transport: bareBroker(), queues: [orders] })
  await assert.rejects(app, {
    code: 'MILLRACE_INVALID_OPTIONS',
    message:
      /^createMillrace: store: bare cannot keep delays .* and dead letters .* give store: postgresStore/,
  })
})

test('with a store it retries, buries, redrives and delays like any other', async (t) => {
  const { app, clock } = await appOn(t)
  const attempts: [string, number][] = []
  let broken = true
  app.work(orders, (message) => {
    attempts.push([message.payload, message.attempt])
    if (message.payload === 'poison' && broken) throw new PermanentError('no')
    if (message.payload === 'flaky' && message.attempt < 3) throw new Error('try again')
  })
  await app.start()
  const poison = await app.send(orders, 'poison')
  await app.send(orders, 'flaky')
  await app.send(orders, 'late', { delayMs: 3_600_000 })
  await clock.advance(20_000)
  assert.deepEqual(attempts, [
    ['poison', 1],
    ['flaky', 1],
    ['flaky', 2],
    ['flaky', 3],
  ])
  const { items } = await app.admin.deadLetters.list(orders, {})
  assert.deepEqual(
    items.map(({ id, owner, reason }) => [id, owner, reason]),
    [[poison.id, 'team-a', 'no (permanent: MILLRACE_PERMANENT)']],
  )
  const stats = await app.admin.stats(orders)
  assert.deepEqual([stats.depth, stats.scheduled, stats.dead], [0, 1, 1])
  broken = false
  const { moved } = await app.admin.deadLetters.redrive(orders, { ids: [poison.id] })
  assert.equal(moved, 1)
  await clock.advance(3_600_000)
  assert.deepEqual(attempts.slice(4), [
    ['poison', 1],
    ['late', 1],
  ])
})

test('keys are remembered, and a queue can be paused', async (t) => {
  const { app, clock } = await appOn(t)
  const seen: string[] = []
  app.work(orders, (message) => void seen.push(message.payload))
  await app.start()
  await app.admin.pause(orders)
  const first = await app.send(orders, 'a', { idempotencyKey: 'k' })
  const again = await app.send(orders, 'a', { idempotencyKey: 'k' })
  assert.deepEqual(again, { id: first.id, duplicate: true })
  await assert.rejects(app.send(orders, 'b', { idempotencyKey: 'k' }), {
    code: 'MILLRACE_IDEMPOTENCY_CONFLICT',
  })
  await clock.advance(10_000)
  assert.deepEqual(seen, [])
  await app.admin.resume(orders)
  await clock.advance(10_000)
  assert.deepEqual(seen, ['a'])
})

test('a dead letter is found by its id, a waiting message is not, and that is said', async (t) => {
  const { app, clock } = await appOn(t)
  app.work(orders, (message) => {
    if (message.payload === 'poison') throw new PermanentError('no')
  })
  const { id } = await app.send(orders, 'poison')
  await assert.rejects(app.admin.messages.get(orders, id), {
    message: /^transport bare cannot show a message by its id while it waits; a broker hands/,
  })
  await assert.rejects(
    app.admin.messages.cancel(orders, id),
    /cannot cancel a message by its id; let/,
  )
  await app.start()
  await clock.advance(1_000)
  assert.equal((await app.admin.messages.get(orders, id))?.state, 'dead')
})

test('what only a store could bring is said to come from nobody without one', async (t) => {
  const below = memory()
  const transport: Connector = {
    name: 'keyless',
    connect: async (context) => {
      const inner = await below.connect(context)
      return { ...inner, name: 'keyless', traits: { ...inner.traits, dedupe: 'none' } }
    },
  }
  const app = await createMillrace({ transport, queues: [orders], logger: silentLogger })
  t.after(() => app.close())
  const keys = app.admin.backend().abilities.find(({ need }) => need === 'keys')
  assert.equal(keys?.from, 'nobody')
  await assert.rejects(app.send(orders, 'a', { idempotencyKey: 'k' }), /keyless remembers no keys/)
})

test('a copy whose send takes longer than the lease does not double: its original is renewed meanwhile', async (t) => {
  const clock = virtualClock()
  const below = memory()
  let sends = 0
  const slow: Connector = {
    name: 'slow',
    connect: async (context) => {
      const broker = bare(await below.connect(context), { delay: { maxMs: 900_000 } })
      const send: Transport['send'] = async (...given) => {
        sends += 1
        // The lease is one of 30 s.
        if (sends > 1) await pause(clock, 100_000)
        return broker.send(...given)
      }
      return { ...broker, send }
    },
  }
  const options = { queues: [orders], clock, logger: silentLogger }
  const app = await createMillrace({ ...options, transport: slow, store: memoryStore() })
  t.after(() => closeNow(app, clock))
  const attempts: number[] = []
  app.work(orders, ({ attempt }) => {
    attempts.push(attempt)
    if (attempt === 1) throw new Error('try again')
  })
  await app.start()
  await app.send(orders, 'slowly')
  await clock.advance(600_000)
  assert.deepEqual([attempts, sends], [[1, 2], 2])
})
