import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue, silentLogger, TransientError } from 'millrace'
import { memory } from 'millrace/memory'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { closeNow, seeded } from '../runtime/stage.ts'

interface Call {
  readonly tenant?: string | undefined
  readonly n: number
}

type Functions = Parameters<typeof limited>[0]

function limited(limits: {
  readonly downstream?: (call: Call) => string
  readonly rateLimit?: { perKey: { key(call: Call): string; perSecond: number } }
  readonly concurrencyLimit?: { perKey: { key(call: Call): string; max: number } }
}) {
  return defineQueue({
    name: 'calls',
    owner: 'team-flow',
    payload: z.object({ tenant: z.string().optional(), n: z.number() }),
    retry: { attempts: 5 },
    ...limits,
  })
}

async function stage(limits: Functions, handler: (call: Call) => void = () => undefined) {
  const clock = virtualClock()
  const calls = limited(limits)
  const app = await createMillrace({
    transport: memory(),
    queues: [calls],
    clock,
    random: seeded(5),
    logger: silentLogger,
  })
  const runs: Call[] = []
  app.work(calls, ({ payload }) => {
    runs.push(payload)
    handler(payload)
  })
  await app.start()
  return { app, calls, clock, runs, close: () => closeNow(app, clock) }
}

type Key = (call: Call) => string
const functions: readonly (readonly [string, (key: Key) => Functions])[] = [
  ['downstream', (downstream) => ({ downstream })],
  ['rateLimit.perKey.key', (key) => ({ rateLimit: { perKey: { key, perSecond: 100 } } })],
  ['concurrencyLimit.perKey.key', (key) => ({ concurrencyLimit: { perKey: { key, max: 3 } } })],
]

for (const [what, limitsBy] of functions) {
  test(`A message for which ${what} gives no name does not run without the limit: it is a dead letter that says so.`, async () => {
    const wrong: readonly (readonly [unknown, string])[] = [
      [undefined, 'gave undefined'],
      ['', 'gave ""'],
      ['x'.repeat(256), 'gave "xxx'],
      ['a\0b', 'gave "a'],
      // JSON takes half a character, and no store keeps it.
      ['\ud800', 'gave "\\ud800"'],
      ['a\udc00b', 'gave "a'],
      [Promise.resolve('a'), 'gave '],
    ]
    let gives: unknown
    const limits = limitsBy(({ tenant }) => {
      if (tenant === 'throws') throw new TypeError('no url')
      return tenant ?? (gives as string)
    })
    const { app, calls, clock, runs, close } = await stage(limits)
    for (const [value, why] of wrong) {
      gives = value
      const { id } = await app.send(calls, { n: 1 })
      await clock.advance(1_000)
      const letter = await app.admin.deadLetters.show(calls, id)
      const said = `${what} of queue "calls" ${why}`
      assert.ok(letter?.reason.startsWith(said), `${letter?.reason}: ${said}`)
      assert.equal(letter?.errorClass, 'permanent')
    }
    gives = 'x'.repeat(255)
    await app.send(calls, { n: 255 })
    await clock.advance(1_000)
    assert.equal(runs.pop()?.n, 255)
    gives = undefined
    const { id } = await app.send(calls, { tenant: 'throws', n: 1 })
    await clock.advance(1_000)
    const letter = await app.admin.deadLetters.show(calls, id)
    assert.ok(letter?.reason.startsWith(`${what} of queue "calls" threw (no url)`), letter?.reason)
    assert.equal(runs.length, 0)

    await app.sendBatch(calls, [{ n: 1 }, { tenant: 'a', n: 2 }, { n: 3 }, { tenant: 'a', n: 4 }])
    await clock.advance(1_000)
    assert.deepEqual(
      runs.map(({ n }) => n),
      [2, 4],
      'those that came in one batch with them run',
    )
    gives = 'a'
    await app.admin.deadLetters.redrive(calls, { ids: [id] })
    await app.send(calls, { n: 5 })
    await clock.advance(1_000)
    assert.equal(runs.at(-1)?.n, 5)
    await close()
  })
}

test('A message without a key gives back the slot and the probe that it had already.', async () => {
  let sick = true
  const { app, calls, clock, runs, close } = await stage(
    {
      downstream: () => 'api',
      rateLimit: { perKey: { key: ({ tenant }) => tenant as string, perSecond: 100 } },
      concurrencyLimit: { perKey: { key: () => 'all', max: 1 } },
    },
    () => {
      if (sick) throw new TransientError('503')
    },
  )
  await app.sendBatch(
    calls,
    Array.from({ length: 20 }, (_, n) => ({ tenant: 'a', n })),
  )
  await clock.advance(8_000)
  assert.equal((await app.admin.breakers.list(calls))[0]?.phase, 'open')
  sick = false
  // Nothing that has a key comes before these when the breaker may be tried.
  await app.sendBatch(
    calls,
    Array.from({ length: 20 }, (_, n) => ({ n: 100 + n })),
  )
  await clock.advance(300_000)
  const { dead, scheduled, depth, inFlight } = await app.admin.stats(calls)
  assert.deepEqual(
    { dead, scheduled, depth, inFlight },
    { dead: 20, scheduled: 0, depth: 0, inFlight: 0 },
  )
  assert.ok(runs.length >= 20)
  assert.deepEqual(await app.admin.breakers.list(calls), [])
  await close()
})
