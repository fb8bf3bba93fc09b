import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineQueue } from 'millrace'
import { closeNow, orderSchema, stage } from './stage.ts'

test('a queue that says nothing has the defaults of the guide', () => {
  const queue = defineQueue({ name: 'plain', owner: 'team-test', payload: orderSchema })
  assert.equal(queue.handlerTimeoutMs, 30_000)
  assert.deepEqual(
    { ...queue.retry },
    { attempts: 8, baseMs: 1_000, maxMs: 3_600_000, jitter: 'full' },
  )
  assert.deepEqual({ ...queue.dedupe }, { windowMs: 86_400_000 })
  assert.equal(queue.capacity !== 'unbounded' && queue.capacity.maxDepth, 100_000)
})

test('ten handlers run side by side, and close gives them 30 s', async () => {
  const { app, clock, queue } = await stage({ queue: { handlerTimeoutMs: 600_000 } })
  let running = 0
  let told = 0
  app.work(queue, async (_message, ctx) => {
    running++
    ctx.signal.addEventListener('abort', () => void told++)
    await new Promise<void>((resolve) => clock.after(120_000, resolve))
  })
  await app.sendBatch(
    queue,
    Array.from({ length: 30 }, (_, i) => ({ orderId: `o${i}` })),
  )
  await app.start()
  await clock.advance(1_000)
  assert.equal(running, 10)
  const closed = app.close()
  await clock.advance(29_999)
  assert.equal(told, 0)
  await clock.advance(1)
  assert.equal(told, 10)
  await clock.advance(1_000)
  await closed
})

test('the key of the handler is that of the send, else what the function gives, else the id', async () => {
  const keys: string[] = []
  const bare = await stage()
  bare.app.work(bare.queue, (message) => void keys.push(message.idempotencyKey))
  await bare.app.start()
  const { id } = await bare.app.send(bare.queue, { orderId: 'a' })
  await bare.app.send(bare.queue, { orderId: 'b' }, { idempotencyKey: 'given' })
  await bare.clock.advance(100)
  await closeNow(bare.app, bare.clock)

  const derived = await stage({ queue: { idempotencyKey: ({ orderId }) => `key of ${orderId}` } })
  derived.app.work(derived.queue, (message) => void keys.push(message.idempotencyKey))
  await derived.app.start()
  await derived.app.send(derived.queue, { orderId: 'c' })
  await derived.app.send(derived.queue, { orderId: 'd' }, { idempotencyKey: 'given' })
  await derived.clock.advance(100)
  await closeNow(derived.app, derived.clock)
  assert.deepEqual(keys, [id, 'given', 'key of c', 'given'])
})
