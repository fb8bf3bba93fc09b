import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasCode, QueueFullError } from 'millrace'
import { memory } from 'millrace/memory'
import { memoryInbox } from 'millrace/testing'
import { pause } from '../../src/model/clock.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { closeNow, type StageOptions, stage } from './stage.ts'

const waiting = { capacity: { maxDepth: 10, whenFull: 'wait', waitMs: 60_000 } } as const

const full = (error: unknown): boolean => hasCode(error, 'MILLRACE_QUEUE_FULL')

/** A backend that does not count exactly, as Postgres: the runtime samples, and nothing below it answers `full`. */
async function sampled(maxDepth: number, more: Partial<StageOptions> = {}, withInbox = false) {
  const store = memory()
  const asked = { gauges: 0, sends: 0 }
  /** What others have stored; the process does not see it before its next sample. */
  const others = { depth: 0 }
  const transport: StageOptions['transport'] = {
    ...store,
    connect: async (context) => {
      const inner = await store.connect(context)
      return { ...inner, ...counting(inner, asked, others) }
    },
  }
  const app = withInbox ? { inbox: memoryInbox({ transport: store }) } : {}
  const capacity = { capacity: { maxDepth }, ...more.queue }
  const scene = await stage({ app, ...more, transport, queue: capacity })
  return { ...scene, asked, others }
}

function counting(
  inner: Transport,
  asked: { gauges: number; sends: number },
  others: { readonly depth: number },
): Partial<Transport> {
  const { browse } = inner
  assert.ok(browse)
  return {
    traits: { ...inner.traits, capacity: 'sampled' },
    topology: {
      ...inner.topology,
      // The store itself refuses nothing.
      ensure: (queues, signal) =>
        inner.topology.ensure(
          queues.map((queue) => ({ ...queue, maxDepth: undefined })),
          signal,
        ),
    },
    browse: {
      ...browse,
      gauge: async (queue) => {
        asked.gauges++
        const gauge = await browse.gauge(queue)
        return { ...gauge, depth: (gauge.depth ?? 0) + others.depth }
      },
    },
    send: (queue, batch, options) => {
      asked.sends++
      return inner.send(queue, batch, options)
    },
  }
}

test('sampled capacity: its own sends count at once, without another look', async () => {
  const { app, clock, queue, asked } = await sampled(8)
  for (const orderId of ['a', 'b']) await app.send(queue, { orderId })
  const { gauges } = asked
  assert.equal(gauges, 1)
  const sent = await Promise.allSettled(
    Array.from({ length: 20 }, (_, i) => app.send(queue, { orderId: `c${i}` })),
  )
  // What was on its way during the second sample counts twice until the third; beyond the capacity nothing is.
  const taken = sent.filter(({ status }) => status === 'fulfilled').length
  assert.ok(taken === 5 || taken === 6, `${taken} of 20 were taken`)
  assert.equal((await app.admin.stats(queue)).depth, 2 + taken)
  await assert.rejects(app.sendBatch(queue, [{ orderId: 'd' }]), (error: unknown) => {
    assert.ok(full(error) && error instanceof QueueFullError && error.retryAfterMs >= 1_000)
    return true
  })
  await closeNow(app, clock)
})

test('sampled capacity: a full queue is refused before the backend is given anything, in a transaction too', async () => {
  const { app, clock, queue, asked, others } = await sampled(5)
  others.depth = 5
  await assert.rejects(app.send(queue, { orderId: 'a' }), full)
  await assert.rejects(app.sendBatch(queue, [{ orderId: 'a' }, { orderId: 'b' }]), full)
  assert.equal(asked.sends, 0)
  let statements = 0
  const execute = async (): Promise<readonly Record<string, unknown>[]> => {
    statements++
    return []
  }
  await assert.rejects(app.send(queue, { orderId: 'a' }, { tx: { execute } }), full)
  await assert.rejects(app.sendBatch(queue, [{ orderId: 'a' }], { tx: { execute } }), full)
  assert.equal(statements, 0)
  await closeNow(app, clock)
})

test('sampled capacity: a batch counts with each of its messages, and goes whole or not at all', async () => {
  const { app, clock, queue, asked, others } = await sampled(5)
  others.depth = 3
  const orders = ['a', 'b', 'c'].map((orderId) => ({ orderId }))
  await assert.rejects(app.sendBatch(queue, orders), full)
  assert.equal(asked.sends, 0)
  assert.equal((await app.sendBatch(queue, orders.slice(1))).length, 2)
  await assert.rejects(app.send(queue, { orderId: 'a' }), full)
  await closeNow(app, clock)
})

test('sampled capacity: what others send is seen within a second when more than half full', async () => {
  const { app, clock, queue, others } = await sampled(10)
  others.depth = 6
  await app.send(queue, { orderId: 'a' })
  others.depth = 9
  await clock.advance(1_000)
  await assert.rejects(app.send(queue, { orderId: 'b' }), full)
  others.depth = 0
  await clock.advance(200)
  await app.send(queue, { orderId: 'c' })
  await closeNow(app, clock)
})

for (const acks of ['by themselves', 'with an effect']) {
  test(`sampled capacity: senders that wait keep the workers of their own process busy, which ack ${acks}, on a bounded number of counts`, async () => {
    await keepBusy(acks === 'with an effect')
  })
}

async function keepBusy(inEffect: boolean): Promise<void> {
  const { app, clock, queue, asked } = await sampled(10, { queue: waiting }, inEffect)
  let running = 0
  const idle: number[] = []
  app.work(
    queue,
    async (_, ctx) => {
      running++
      await pause(clock, 50, ctx.signal)
      if (inEffect) await ctx.tx(() => undefined)
      running--
    },
    { concurrency: 10 },
  )
  await app.start()
  const sent = Promise.all(
    Array.from({ length: 400 }, (_, i) => app.send(queue, { orderId: `${i}` })),
  )
  const startedAt = clock.now()
  while (clock.now() < startedAt + 1_500) {
    await clock.advance(5)
    idle.push(10 - running)
  }
  // Ten at a time, 50 ms each: 2,000 ms for all. The samples at the very moment when ten end see none.
  const lost = idle.slice(4).reduce((sum, n) => sum + n, 0) / idle.length / 10
  assert.ok(lost < 0.25, `${Math.round(lost * 100)} % of the workers' time was lost`)
  await clock.advance(2_000)
  await sent
  assert.equal(app.counters()['orders']?.acked, 400)
  // One in 10 ms at most, and only while somebody waits.
  assert.ok(asked.gauges < 200, `${asked.gauges} counts`)
  await closeNow(app, clock)
}

test('sampled capacity: senders that wait hear of what others handled as soon as a count may be asked for', async () => {
  const { app, clock, queue, open } = await sampled(10, { queue: waiting })
  const elsewhere = await open()
  elsewhere.work(queue, () => undefined)
  const sent = Promise.all(
    Array.from({ length: 200 }, (_, i) => app.send(queue, { orderId: `${i}` })),
  )
  await clock.advance(1_000)
  await elsewhere.start()
  await clock.advance(1_500)
  await sent
  await closeNow(elsewhere, clock)
  await closeNow(app, clock)
})
