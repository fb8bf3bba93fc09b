import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, PartialBatchError } from 'millrace'
import { memory } from 'millrace/memory'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { problems } from '../../src/model/problems.ts'
import { refuseBeyondBackend } from '../../src/runtime/backend-limits.ts'
import { refused } from '../../src/transport/outcomes.ts'
import type { Connector, Transport } from '../../src/transport/transport.ts'
import { memoryTraits } from '../../src/transports/memory/traits.ts'
import { bare } from '../layers/bare.ts'

const orders = defineQueue({ name: 'orders', owner: 'team-a', payload: z.string() })

async function appOn(t: TestContext, weaken: (broker: Transport) => Transport) {
  const below = memory()
  const transport: Connector = {
    name: 'weak',
    connect: async (context) => weaken(await below.connect(context)),
  }
  const app = await createMillrace({ transport, store: memoryStore(), queues: [orders] })
  t.after(() => app.close())
  return app
}

/** Takes three messages at once, and no batch that is all or nothing. */
function broker(inner: Transport): Transport {
  const plain = bare(inner)
  return { ...plain, traits: { ...plain.traits, limits: { ...plain.traits.limits, sendBatch: 3 } } }
}

test('what the backend cannot do is refused by name, all at once', async (t) => {
  const app = await appOn(t, (inner) => ({
    ...inner,
    traits: { ...inner.traits, priorities: 1, delay: { maxMs: 86_400_000 } },
  }))
  await assert.rejects(app.send(orders, 'a', { priority: 3, delayMs: 86_400_001 }), {
    code: 'MILLRACE_INVALID_OPTIONS',
    message:
      'send to queue "orders": priority: the queue has no priorities on memory, got 3; leave it out, or say with priorities how many levels it has; ' +
      'delayMs: memory keeps a message waiting for at most 86400000 ms, got 86400001; send it later, or use a database as the transport',
  })
  assert.equal((await app.admin.stats(orders)).depth, 0)
})

test('without a store, keys are refused by a backend that remembers none', () => {
  const found = problems('send')
  const traits = { ...memoryTraits, delay: 'none', dedupe: 'none', order: 'none' } as const
  refuseBeyondBackend(
    { readyAt: 1, idempotencyKey: 'k', dedupeKey: 'd' },
    { name: 'weak', traits },
    found,
  )
  assert.throws(() => found.throwIfAny(), {
    message:
      'send: readyAt: weak cannot keep a message waiting; give createMillrace a store that does; ' +
      'idempotencyKey: weak remembers no keys; give createMillrace a store that does; ' +
      'dedupeKey: weak remembers no keys; give createMillrace a store that does',
  })
})

test('where order is kept, a delayed send is refused for its sake, as a store would not help', () => {
  const found = problems('send')
  const traits = { ...memoryTraits, delay: 'none', order: 'perKey' } as const
  refuseBeyondBackend({ delayMs: 1 }, { name: 'ordered', traits }, found)
  assert.throws(() => found.throwIfAny(), {
    message:
      'send: delayMs: ordered keeps an order, and a message that waits would leave it; leave it out, or use a queue without order',
  })
})

test('a batch goes out in parts where nothing is all or nothing', async (t) => {
  const app = await appOn(t, broker)
  const payloads = Array.from({ length: 10 }, (_, i) => `p${i}`)
  const results = await app.sendBatch(orders, payloads)
  assert.equal(new Set(results.map(({ id }) => id)).size, 10)
  assert.equal((await app.admin.stats(orders)).depth, 10)
})

test('a batch that was stored in part says which part', async (t) => {
  let calls = 0
  const app = await appOn(t, (inner) => {
    const taken = broker(inner)
    return {
      ...taken,
      send: async (queue, batch, options) => {
        calls += 1
        if (calls !== 2) return taken.send(queue, batch, options)
        return batch.map(() => refused('throttled', { retryable: true }))
      },
    }
  })
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

test('where a delayed message would leave the order of its key, one with a key is refused, and no other', () => {
  const traits = { ...memoryTraits, delayLeavesOrder: true } as const
  const backend = { name: 'lanes', traits }
  const found = problems('send')
  refuseBeyondBackend({ delayMs: 1 }, backend, found)
  refuseBeyondBackend({ orderingKey: 'k' }, backend, found)
  assert.deepEqual(found.all(), [])
  refuseBeyondBackend({ readyAt: 1, orderingKey: 'k' }, backend, found)
  assert.deepEqual(found.all(), [
    'readyAt: lanes keeps keys in order, and a message with a key that waits would leave its place; leave the delay out',
  ])
})

test('where messages cannot be found by id and queues not paused, that is said, and nothing is guessed', async (t) => {
  const below = memory()
  const transport: Connector = {
    name: 'weak',
    connect: async (context) => {
      const { browse, ...inner } = await below.connect(context)
      return { ...inner, ...(browse && { browse: { gauge: browse.gauge } }) }
    },
  }
  const app = await createMillrace({ transport, queues: [orders] })
  t.after(() => app.close())
  const { admin } = app
  const { id } = await app.send(orders, 'a')
  const refusals = [
    [admin.messages.get(orders, id), /cannot show a message by its id while it waits; a broker/],
    [admin.messages.cancel(orders, id), /cannot cancel a message by its id; let the handler/],
    [admin.pause(orders), /cannot pause a queue; give createMillrace a store/],
    [admin.resume(orders), /cannot pause a queue; give createMillrace a store/],
  ] as const
  for (const [asked, expected] of refusals) await assert.rejects(asked, expected)
})
