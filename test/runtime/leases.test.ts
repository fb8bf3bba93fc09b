import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memory } from 'millrace/memory'
import { closeNow, type StageOptions, stage } from './stage.ts'

/** Memory, with what is asked of it about leases. */
async function watched(options: StageOptions) {
  const store = memory()
  const asked: { subscribedMs: number[]; renewed: { at: number; size: number; ms: number }[] } = {
    subscribedMs: [],
    renewed: [],
  }
  const transport: StageOptions['transport'] = {
    ...store,
    connect: async (context) => {
      const inner = await store.connect(context)
      return {
        ...inner,
        subscribe: async (queue, how) => {
          asked.subscribedMs.push(how.leaseMs)
          const subscription = await inner.subscribe(queue, how)
          const { renew } = subscription
          assert.ok(renew)
          return {
            ...subscription,
            renew: (batch, ms) => {
              asked.renewed.push({ at: context.clock.now(), size: batch.length, ms })
              return renew(batch, ms)
            },
          }
        },
      }
    },
  }
  return { ...(await stage({ ...options, transport })), asked }
}

test('a lease is 5 s longer than the handler may take, and 30 s at most', async () => {
  for (const [handlerTimeoutMs, leaseMs] of [
    [1, 5_001],
    [1_000, 6_000],
    [25_000, 30_000],
    [25_001, 30_000],
    [3_600_000, 30_000],
  ] as const) {
    const { app, clock, queue, asked } = await watched({ queue: { handlerTimeoutMs } })
    app.work(queue, () => undefined)
    await app.start()
    assert.deepEqual(asked.subscribedMs, [leaseMs])
    await closeNow(app, clock)
  }
})

test('everything in hand is renewed by one call, every third of a lease, until 5 s after its time', async () => {
  const { app, clock, queue, asked } = await watched({
    queue: { handlerTimeoutMs: 33_000, retry: { attempts: 1 } },
  })
  app.work(queue, () => new Promise<void>((resolve) => clock.after(300_000, resolve)), {
    concurrency: 20,
  })
  await app.start()
  const from = clock.now()
  await app.sendBatch(
    queue,
    Array.from({ length: 20 }, (_, i) => ({ orderId: `o${i}` })),
  )
  await clock.advance(37_999)
  assert.deepEqual(
    asked.renewed.map(({ at, size, ms }) => [at - from, size, ms]),
    [10_000, 20_000, 30_000].map((at) => [at, 20, 30_000]),
  )
  await clock.advance(100_000)
  assert.equal(asked.renewed.length, 3)
  assert.equal((await app.admin.stats(queue)).dead, 20)
  await clock.advance(300_000)
  await closeNow(app, clock)
})
