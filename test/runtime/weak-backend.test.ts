import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, PartialBatchError } from 'millrace'
import { memory } from 'millrace/memory'
import { z } from 'zod'
import { refused } from '../../src/transport/outcomes.ts'
import type { Connector, Transport } from '../../src/transport/transport.ts'
import { bare } from '../layers/bare.ts'

const orders = defineQueue({ name: 'orders', owner: 'team-a', payload: z.string() })

async function appOn(t: TestContext, weaken: (broker: Transport) => Transport = (same) => same) {
  const below = memory()
  const transport: Connector = {
    name: 'bare',
    connect: async (context) => {
      const inner = await below.connect(context)
      const broker = bare(inner, { priorities: 1 })
      return weaken({
        ...broker,
        traits: { ...broker.traits, limits: { ...inner.traits.limits, sendBatch: 3 } },
      })
    },
  }
  const app = await createMillrace({ transport, queues: [orders] })
  t.after(() => app.close())
  return app
}

test('what the backend cannot do is refused by name, all at once', async (t) => {
  const app = await appOn(t)
  const asked = { priority: 3, delayMs: 5, idempotencyKey: 'k', dedupeKey: 'd' }
  await assert.rejects(app.send(orders, 'a', asked), {
    code: 'MILLRACE_INVALID_OPTIONS',
    message:
      'send to queue "orders": priority: bare knows no priorities, got 3; leave it out; ' +
      'delayMs: bare cannot keep a message waiting; give createMillrace a store that does; ' +
      'idempotencyKey: bare remembers no keys; give createMillrace a store that does; ' +
      'dedupeKey: bare remembers no keys; give createMillrace a store that does',
  })
  await assert.rejects(
    app.send(orders, 'a', { readyAt: Date.now() + 1_000 }),
    /readyAt: bare cannot/,
  )
  assert.equal((await app.admin.stats(orders)).depth, 0)
})

test('a batch goes out in parts where nothing is all or nothing', async (t) => {
  const app = await appOn(t)
  const payloads = Array.from({ length: 10 }, (_, i) => `p${i}`)
  const results = await app.sendBatch(orders, payloads)
  assert.equal(new Set(results.map(({ id }) => id)).size, 10)
  assert.equal((await app.admin.stats(orders)).depth, 10)
})

test('a batch that was stored in part says which part', async (t) => {
  let calls = 0
  const app = await appOn(t, (broker) => ({
    ...broker,
    send: async (queue, batch, options) => {
      calls += 1
      if (calls !== 2) return broker.send(queue, batch, options)
      return batch.map(() => refused('throttled', { retryable: true }))
    },
  }))
  const error = await app
    .sendBatch(orders, ['a', 'b', 'c', 'd', 'e', 'f', 'g'])
    .catch((e: unknown) => e)
  assert.ok(error instanceof PartialBatchError)
  assert.match(
    error.message,
    /^queue "orders": 4 of 7 messages were stored, because bare .* payload 3: /,
  )
  assert.deepEqual(
    error.results.map((result) => ('error' in result ? result.error.code : 'stored')),
    ['stored', 'stored', 'stored', ...Array<string>(3).fill('MILLRACE_UNAVAILABLE'), 'stored'],
  )
  assert.equal(error.retryable, true)
  assert.equal((await app.admin.stats(orders)).depth, 4)
})
