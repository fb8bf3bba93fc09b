import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import {
  type App,
  createMillrace,
  defineQueue,
  type RateLimitOptions,
  silentLogger,
} from 'millrace'
import { memory } from 'millrace/memory'
import { memoryStore } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { rateLimiter } from '../../src/flow/rate-limiter.ts'
import { systemClock } from '../../src/model/clock.ts'
import { closeNow } from '../runtime/stage.ts'
import { connectStore } from '../stores/store-harness.ts'
import { flowStores, freshQueue } from './flow-stores.ts'

interface Call {
  readonly tenant: string
  readonly n: number
}

async function fleet(rateLimit: RateLimitOptions<Call>, count = 3) {
  const clock = virtualClock()
  const [transport, store] = [memory(), memoryStore()]
  const queue = defineQueue({
    name: 'calls',
    owner: 'team-flow',
    payload: z.object({ tenant: z.string(), n: z.number() }),
    retry: { attempts: 1 },
    rateLimit,
  })
  const runs: { readonly at: number; readonly tenant: string }[] = []
  const apps: App[] = []
  for (let i = 0; i < count; i++) {
    const app = await createMillrace({
      transport,
      store,
      queues: [queue],
      clock,
      logger: silentLogger,
    })
    app.work(queue, ({ payload }) => void runs.push({ at: clock.now(), tenant: payload.tenant }))
    await app.start()
    apps.push(app)
  }
  const [app] = apps
  assert.ok(app !== undefined)
  const send = (tenant: string, many: number) =>
    app.sendBatch(
      queue,
      Array.from({ length: many }, (_, n) => ({ tenant, n })),
    )
  const close = async () => {
    for (const one of apps) await closeNow(one, clock)
  }
  return { app, clock, queue, runs, send, close }
}

/** Most that ran within any second that begins with a run. */
function mostInASecond(runs: readonly { readonly at: number }[]): number {
  return Math.max(
    0,
    ...runs.map(({ at }) => runs.filter((one) => one.at >= at && one.at < at + 1_000).length),
  )
}

test('All workers together keep to the rate of the queue, use it, and hold nothing.', async () => {
  const { app, clock, queue, runs, send, close } = await fleet({ perSecond: 20, burst: 5 })
  await send('a', 600)
  await clock.advance(10_000)
  assert.ok(mostInASecond(runs) <= 25, `${mostInASecond(runs)} in a second`)
  assert.ok(runs.length >= 150 && runs.length <= 206, `${runs.length} in ten seconds`)
  const { inFlight, dead } = await app.admin.stats(queue)
  assert.deepEqual([inFlight, dead], [0, 0])
  await clock.advance(60_000)
  assert.equal(runs.length, 600, 'one attempt was enough for each: waiting costs none')
  await close()
})

test('A key with many messages keeps to its rate, and delays no other key.', async () => {
  const { clock, runs, send, close } = await fleet({
    perKey: { key: ({ tenant }) => tenant, perSecond: 5, burst: 1 },
  })
  await send('noisy', 1_000)
  await clock.advance(1_000)
  await send('quiet', 5)
  await clock.advance(3_000)
  assert.equal(runs.filter(({ tenant }) => tenant === 'quiet').length, 5)
  await clock.advance(20_000)
  const noisy = runs.filter(({ tenant }) => tenant === 'noisy')
  assert.ok(mostInASecond(noisy) <= 6)
  assert.ok(noisy.length >= 90 && noisy.length <= 125, `${noisy.length} in 24 seconds`)
  await close()
})

test('With a rate of the queue and of each key, the smaller one decides, and it is used.', async () => {
  const perKey = { key: ({ tenant }: Call) => tenant, perSecond: 6 }
  const { clock, runs, send, close } = await fleet({ perSecond: 10, perKey }, 1)
  for (const tenant of ['a', 'b']) await send(tenant, 300)
  await clock.advance(30_000)
  assert.ok(runs.length >= 270 && runs.length <= 311, `${runs.length} of 310`)
  await close()
})

test('A token that the queue’s own rate made useless is kept for the key.', async () => {
  const taken: string[] = []
  let full = false
  const limiter = rateLimiter({
    queue: 'q',
    all: { perSecond: 1, burst: 1 },
    perKey: { key: String, perSecond: 1, burst: 1 },
    buckets: {
      take: async (name) => {
        taken.push(name)
        const refused = full && name === 'flow:rate:q'
        return refused ? { taken: false, retryAfterMs: 10 } : { taken: true, retryAfterMs: 0 }
      },
    },
    clock: virtualClock(),
    logger: silentLogger,
  })
  full = true
  assert.equal(typeof (await limiter.ask('a')), 'number')
  full = false
  assert.equal(await limiter.ask('a'), undefined)
  assert.equal(await limiter.ask('a'), undefined)
  const ofKey = taken.filter((name) => name === 'flow:rate:q:a')
  assert.equal(ofKey.length, 2, 'two ran, and two tokens were taken')
})

test('What is missing or wrong is said before the first message; with scope process no store is needed.', async () => {
  const base = { name: 'q', owner: 'o', payload: z.number() }
  const shared = defineQueue({ ...base, rateLimit: { perSecond: 1 } })
  // A broker, which is no store.
  const { name, connect } = memory()
  await assert.rejects(createMillrace({ transport: { name, connect }, queues: [shared] }), {
    code: 'MILLRACE_INVALID_OPTIONS',
    message: /store: queue "q" has a rateLimit .*rateLimit: \{ scope: 'process' \}/,
  })
  const own = defineQueue({ ...base, rateLimit: { perSecond: 1, scope: 'process' } })
  const app = await createMillrace({ transport: { name, connect }, queues: [own] })
  await app.close()
  for (const [rateLimit, message] of [
    [{}, /rateLimit: expected perSecond, perKey or both/],
    [{ perSecond: 0 }, /rateLimit.perSecond: expected a number from 0.001 to 1000000, got 0/],
    [{ perKey: { perSecond: 1 } }, /rateLimit.perKey.key: expected a function of the payload/],
    [{ persecond: 1 }, /unknown option "rateLimit.persecond", did you mean "rateLimit.perSecond"/],
    // No store keeps a bucket that takes more than ten years to fill.
    [{ perSecond: 0.001, burst: 315_620 }, /rateLimit.burst: expected a number from 1 to 315619,/],
    [{ perSecond: 1, scope: 'all' }, /rateLimit.scope: expected "store" or "process", got "all"/],
  ] as const) {
    assert.throws(() => defineQueue({ ...base, rateLimit: Object(rateLimit) }), message)
  }
})

test('While nobody can count, messages wait, and the log has it once.', async () => {
  const lines: string[] = []
  const limiter = rateLimiter({
    queue: 'q',
    all: { perSecond: 1, burst: 1 },
    perKey: undefined,
    buckets: { take: () => Promise.reject(new Error('gone')) },
    clock: virtualClock(),
    logger: { ...silentLogger, warn: (line) => void lines.push(line) },
  })
  assert.deepEqual([await limiter.ask(1), await limiter.ask(2)], [1_000, 1_000])
  assert.deepEqual(lines, ['queue "q": its rate cannot be counted (gone); its messages wait'])
})

for (const [name, connector] of flowStores()) {
  test(`Five processes that ask all the time share one rate (${name}).`, async (t) => {
    const queue = freshQueue()
    const limiters = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const store = await connectStore(connector)
        t.after(() => store.close())
        const { buckets } = store
        return rateLimiter({
          queue,
          all: { perSecond: 20, burst: 4 },
          perKey: undefined,
          buckets,
          clock: systemClock(),
          logger: silentLogger,
        })
      }),
    )
    const begun = Date.now()
    let gone = 0
    while (Date.now() - begun < 2_000) {
      const waits = await Promise.all(limiters.map((one) => one.ask(undefined)))
      gone += waits.filter((ms) => ms === undefined).length
      await wait(10)
    }
    const seconds = (Date.now() - begun) / 1_000
    assert.ok(gone <= 4 + 20 * seconds + 1, `${gone} in ${seconds} s`)
    assert.ok(gone >= 20, `${gone} in ${seconds} s`)
  })
}
