import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type App,
  createMillrace,
  defineQueue,
  type GateOptions,
  silentLogger,
  ThrottledError,
} from 'millrace'
import { memory } from 'millrace/memory'
import { memoryStore } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { closeNow, seeded } from '../runtime/stage.ts'

/** Three apps, and a partner that takes so many calls a second and says "in 30 seconds" to the next one. */
async function partner(limit: number, gate?: GateOptions | false) {
  const clock = virtualClock()
  const [transport, store] = [memory(), memoryStore()]
  const queue = defineQueue({
    name: 'calls',
    owner: 'team-flow',
    payload: z.object({ host: z.string(), n: z.number() }),
    retry: { attempts: 2, baseMs: 1_000, maxMs: 1_000 },
    downstream: ({ host }) => host,
    ...(gate === undefined ? {} : { gate }),
  })
  const calls: { readonly at: number; readonly ok: boolean; readonly host: string }[] = []
  let second = { at: 0, taken: 0 }
  const take = (): boolean => {
    const at = Math.floor(clock.now() / 1_000)
    if (second.at !== at) second = { at, taken: 0 }
    return ++second.taken <= limit
  }
  const apps: App[] = []
  for (let i = 0; i < 3; i++) {
    const app = await createMillrace({
      transport,
      store,
      queues: [queue],
      clock,
      random: seeded(i + 1),
      logger: silentLogger,
    })
    app.work(
      queue,
      async ({ payload: { host } }) => {
        const ok = host !== 'partner' || take()
        calls.push({ at: clock.now(), ok, host })
        await new Promise<void>((resolve) => clock.after(20, resolve))
        if (!ok) throw new ThrottledError('429', { retryAfterMs: 30_000 })
      },
      { concurrency: 5 },
    )
    await app.start()
    apps.push(app)
  }
  const [app] = apps
  assert.ok(app !== undefined)
  const send = (host: string, count: number) =>
    app.sendBatch(
      queue,
      Array.from({ length: count }, (_, n) => ({ host, n })),
    )
  const close = async () => {
    for (const one of apps) await closeNow(one, clock)
  }
  return { app, calls, clock, queue, send, close }
}

test('One 429 pauses the downstream for all workers; afterwards few go at first, then more; nobody else waits.', async () => {
  const { app, calls, clock, queue, send, close } = await partner(20)
  await send('partner', 300)
  await send('other', 100)
  const begun = clock.now()
  await clock.advance(2_000)
  const refused = calls.filter(({ ok }) => !ok)
  assert.ok(refused.length >= 1 && refused.length <= 15, `${refused.length} refused: what ran then`)
  assert.equal(calls.filter(({ host }) => host === 'other').length, 100)
  const { inFlight, dead, scheduled } = await app.admin.stats(queue)
  assert.deepEqual([inFlight, dead], [0, 0], 'what waits is not held')
  assert.ok((scheduled ?? 0) >= 250)
  const until = (await app.admin.breakers.list(queue))[0]?.pausedUntil ?? 0
  assert.ok(until >= begun + 30_000 && until <= begun + 32_000)
  calls.length = 0
  await clock.advance(until - clock.now() - 1)
  assert.equal(calls.length, 0, 'nobody goes there')
  await clock.advance(10_000)
  const first = calls.filter(({ at }) => at < until + 5_000).length
  const next = calls.length - first
  assert.ok(first >= 1 && first <= 9, `${first} in the first five seconds`)
  assert.ok(next > first && next <= 20, `${next} in the next five`)
  await clock.advance(600_000)
  assert.ok(calls.filter(({ ok }) => !ok).length <= 40, 'seldom asked in vain')
  const after = await app.admin.stats(queue)
  assert.deepEqual([after.dead, after.scheduled, after.depth], [0, 0, 0])
  await close()
})

test('Without the gate each message waits by itself.', async () => {
  const { calls, clock, send, close } = await partner(20, false)
  await send('partner', 300)
  await clock.advance(2_000)
  assert.ok(calls.filter(({ ok }) => !ok).length >= 100)
  await close()
})

test('The options of the gate are checked.', () => {
  const base = { name: 'q', owner: 'o', payload: z.number() }
  assert.throws(() => defineQueue({ ...base, gate: {} }), /gate: needs downstream/)
  assert.throws(
    () => defineQueue({ ...base, downstream: () => 'a', gate: Object({ start: 1, stepMs: 1 }) }),
    /unknown option "gate.start".*gate.stepMs: expected an integer from 100 to 600000, got 1/,
  )
})
