import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memory } from 'millrace/memory'
import type { Transport } from '../../src/transport/transport.ts'
import { closeNow, type StageOptions, stage } from './stage.ts'

/** Memory, with the size of every batch that it was given or asked for. */
async function measured(limits: Partial<Transport['traits']['limits']> = {}) {
  const store = memory()
  const sizes: Record<'sent' | 'asked' | 'settled' | 'inFlight', number[]> = {
    ...{ sent: [], asked: [], settled: [], inFlight: [] },
  }
  const transport: StageOptions['transport'] = {
    ...store,
    connect: async (context) => {
      const inner = await store.connect(context)
      return {
        ...inner,
        traits: { ...inner.traits, limits: { ...inner.traits.limits, ...limits } },
        send: (queue, batch, options) => {
          sizes.sent.push(batch.length)
          return inner.send(queue, batch, options)
        },
        subscribe: async (queue, options) => {
          const subscription = await inner.subscribe(queue, options)
          sizes.inFlight.push(options.maxInFlight)
          return {
            ...subscription,
            resize: (maxInFlight) => void sizes.inFlight.push(maxInFlight),
            receive: (how) => {
              sizes.asked.push(how.max)
              return subscription.receive(how)
            },
            settle: (batch) => {
              sizes.settled.push(batch.length)
              return subscription.settle(batch)
            },
          }
        },
      }
    },
  }
  return { ...(await stage({ transport })), sizes }
}

test('sends of one moment are one call to the backend, and each gets its own answer', async () => {
  const { app, clock, queue, sizes } = await measured()
  const sent = await Promise.allSettled(
    Array.from({ length: 64 }, (_, i) =>
      // A wrong one among them never gets that far.
      app.send(queue, i === 7 ? ({} as { orderId: string }) : { orderId: `o${i}` }),
    ),
  )
  assert.deepEqual(sizes.sent, [63])
  assert.deepEqual(
    sent.flatMap(({ status }, i) => (status === 'rejected' ? [i] : [])),
    [7],
  )
  await closeNow(app, clock)
})

test('a worker receives as many as it can start, and settles what ends together in one call', async () => {
  const { app, clock, queue, sizes } = await measured()
  // One timer for all that run: on the virtual clock two timers of one moment are two moments.
  let together: Promise<void> | undefined
  const handler = (): Promise<void> => {
    together ??= new Promise((resolve) =>
      clock.after(10, () => {
        together = undefined
        resolve()
      }),
    )
    return together
  }
  app.work(queue, handler, { concurrency: 50 })
  await app.sendBatch(
    queue,
    Array.from({ length: 200 }, (_, i) => ({ orderId: `o${i}` })),
  )
  await app.start()
  await clock.advance(1_000)
  assert.equal(app.counters()['orders']?.acked, 200)
  assert.equal(sizes.asked[0], 50)
  assert.ok(sizes.asked.every((max) => max <= 50))
  assert.ok(sizes.settled.length <= 8, `${sizes.settled.length} calls to settle 200 messages`)
  await closeNow(app, clock)
})

test('no call to a backend is larger than it takes', async () => {
  const { app, clock, queue, sizes } = await measured({
    sendBatch: 7,
    receiveBatch: 3,
    settleBatch: 2,
  })
  app.work(queue, () => undefined, { concurrency: 50 })
  await Promise.all(Array.from({ length: 20 }, (_, i) => app.send(queue, { orderId: `o${i}` })))
  await app.start()
  await clock.advance(1_000)
  assert.equal(app.counters().orders?.acked, 20)
  assert.deepEqual(sizes.sent, [7, 7, 6])
  assert.deepEqual([Math.max(...sizes.asked), Math.max(...sizes.settled)], [3, 2])
  await closeNow(app, clock)
})

test('a backend that pushes is told how much may be in flight: what runs and as many settlements, also when that changes', async () => {
  const fixed = await measured()
  fixed.app.work(fixed.queue, () => undefined, { concurrency: 50 })
  await fixed.app.start()
  assert.deepEqual(fixed.sizes.inFlight, [100])
  await closeNow(fixed.app, fixed.clock)

  const { app, clock, queue, sizes } = await measured()
  const handler = (): Promise<void> => new Promise((resolve) => clock.after(1_000, resolve))
  app.work(queue, handler, { concurrency: { min: 1, max: 20 } })
  await app.start()
  await app.sendBatch(
    queue,
    Array.from({ length: 500 }, (_, i) => ({ orderId: `o${i}` })),
  )
  await clock.advance(60_000)
  const asked = Math.max(...sizes.asked)
  assert.ok(asked > 1, 'it works on more than it began with')
  assert.ok(
    sizes.inFlight.length > 1 && Math.max(...sizes.inFlight) >= 2 * asked,
    `${sizes.inFlight}`,
  )
  await closeNow(app, clock)
})

test('while the backend answers no settlement, no more are taken than run and as many again', async () => {
  const store = memory()
  const answered = Promise.withResolvers<void>()
  const transport: StageOptions['transport'] = {
    ...store,
    connect: async (context) => {
      const inner = await store.connect(context)
      return {
        ...inner,
        subscribe: async (queue, options) => {
          const subscription = await inner.subscribe(queue, options)
          return {
            ...subscription,
            settle: async (batch) => {
              await answered.promise
              return subscription.settle(batch)
            },
          }
        },
      }
    },
  }
  const { app, clock, queue } = await stage({ transport })
  app.work(queue, () => undefined, { concurrency: 3 })
  await app.sendBatch(
    queue,
    Array.from({ length: 20 }, (_, i) => ({ orderId: `o${i}` })),
  )
  await app.start()
  await clock.advance(1_000)
  assert.equal((await app.admin.stats(queue)).inFlight, 6)
  answered.resolve()
  await clock.advance(1_000)
  assert.equal(app.counters()['orders']?.acked, 20)
  await closeNow(app, clock)
})
