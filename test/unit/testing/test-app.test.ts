import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineQueue, PermanentError, TransientError } from 'millrace'
import { memory } from 'millrace/memory'
import { type Mishaps, memoryInbox, testApp } from 'millrace/testing'
import { z } from 'zod'
import { pause } from '../../../src/model/clock.ts'

const steps = defineQueue({
  name: 'steps',
  owner: 'team-test',
  payload: z.object({ n: z.number() }),
})
const other = defineQueue({ name: 'other', owner: 'team-test', payload: z.string() })

test('settled() waits for all that follows: retries, delays, other queues.', async () => {
  const app = await testApp({ queues: [steps, other] })
  const ran: string[] = []
  app.work(steps, async ({ payload, attempt }, ctx) => {
    ran.push(`steps ${payload.n} attempt ${attempt}`)
    if (attempt < 3) throw new TransientError('not yet')
    await ctx.send(other, 'follow-up', { delayMs: 86_400_000 })
  })
  app.work(other, ({ payload }) => {
    ran.push(payload)
  })
  const startedAt = app.clock.now()
  await app.send(steps, { n: 1 })
  await app.settled()
  assert.deepEqual(ran, [
    'steps 1 attempt 1',
    'steps 1 attempt 2',
    'steps 1 attempt 3',
    'follow-up',
  ])
  assert.ok(app.clock.now() - startedAt >= 86_400_000)
  await app.close()
})

test('settled() waits as long as its messages do, hour after hour, and for whoever is told of a death.', async () => {
  const told: string[] = []
  const app = await testApp({
    queues: [steps, other],
    onDeadLetter: async ({ reason }) => {
      // Something of its own that takes a moment.
      await new Promise((resolve) => setImmediate(resolve))
      await app.send(other, reason)
    },
  })
  const hours: number[] = []
  const startedAt = app.clock.now()
  app.work(steps, ({ attempt }) => {
    hours.push(Math.round((app.clock.now() - startedAt) / 3_600_000))
    if (attempt === 4) throw new PermanentError('four times')
    throw new TransientError('in an hour', { delayMs: 3_600_000 })
  })
  app.work(other, ({ payload }) => void told.push(payload))
  await app.send(steps, { n: 1 })
  await app.settled()
  assert.deepEqual([hours, told.length], [[0, 1, 2, 3], 1])
  await app.close()
})

test('settled() leaves dead letters where they are; a redrive is settled again.', async () => {
  const app = await testApp({ queues: [other] })
  let broken = true
  app.work(other, () => {
    if (broken) throw new PermanentError('no')
  })
  const { id } = await app.send(other, 'x')
  await app.settled()
  assert.equal((await app.admin.stats(other)).dead, 1)
  broken = false
  assert.equal((await app.admin.deadLetters.redrive(other, { ids: [id] })).moved, 1)
  await app.settled()
  const { dead, depth } = await app.admin.stats(other)
  assert.deepEqual({ dead, depth }, { dead: 0, depth: 0 })
  await app.close()
})

test('settled() waits for handlers that do something real.', async () => {
  const app = await testApp({ queues: [other] })
  let done = 0
  app.work(other, async () => {
    await new Promise((resolve) => setTimeout(resolve, 5))
    done += 1
  })
  await app.sendBatch(other, ['a', 'b', 'c'])
  await app.settled()
  assert.equal(done, 3)
  assert.equal(app.counters().other?.acked, 3)
  await app.close()
})

test('settled() moves time for handlers that wait for it.', async () => {
  const app = await testApp({ queues: [other] })
  app.work(other, async (_message, { signal }) => {
    await pause(app.clock, 20_000, signal)
    signal.throwIfAborted()
  })
  await app.send(other, 'x')
  await app.settled({ realWaitMs: 2 })
  assert.equal(app.counters().other?.acked, 1)
  await app.close()
})

test('settled() says what is still waiting when nobody receives it.', async () => {
  const app = await testApp({ queues: [steps, other] })
  app.work(other, () => {})
  await app.send(steps, { n: 1 })
  await assert.rejects(app.settled(), /nothing receives it any more: "steps" has 1 ready/)
  await app.close()
})

test('close() moves time for the handlers that it waits for.', async () => {
  const app = await testApp({ queues: [other] })
  app.work(other, () => pause(app.clock, 20_000))
  await app.start()
  await app.send(other, 'x')
  await app.clock.advance(0)
  await app.close()
  assert.equal(app.counters().other?.acked, 1)
})

test('settled() names a paused queue.', async () => {
  const app = await testApp({ queues: [other] })
  app.work(other, () => {})
  await app.admin.pause(other)
  await app.send(other, 'x')
  await assert.rejects(
    app.settled(),
    /"other" has 1 ready, 0 scheduled, 0 in flight, and is paused/,
  )
  await app.admin.resume(other)
  await app.settled()
  await app.close()
})

test('settled() stops at maxMs.', async () => {
  const app = await testApp({ queues: [other] })
  app.work(other, () => {})
  await app.send(other, 'x', { delayMs: 7_200_000 })
  await assert.rejects(
    app.settled({ maxMs: 3_600_000 }),
    /3600000 ms of virtual time .* 1 scheduled/,
  )
  await app.settled()
  await app.close()
})

test('A handler that never ends is timed out, retried and buried on virtual time.', async () => {
  const app = await testApp({ queues: [other] })
  app.work(other, () => new Promise(() => {}))
  await app.send(other, 'x')
  await app.settled({ realWaitMs: 1 })
  assert.equal((await app.admin.stats(other)).dead, 1)
  await app.close({ timeoutMs: 1_000 })
})

test('The same seed gives the same run.', async () => {
  const endsAt = async (seed: string): Promise<number> => {
    const app = await testApp({ queues: [other], seed })
    app.work(other, ({ attempt }) => {
      if (attempt < 6) throw new TransientError('again')
    })
    await app.send(other, 'x')
    await app.settled()
    await app.close()
    return app.clock.now()
  }
  assert.equal(await endsAt('a'), await endsAt('a'))
  assert.notEqual(await endsAt('a'), await endsAt('b'))
})

test('A random of your own is the one that is used.', async () => {
  const app = await testApp({ queues: [other], seed: 'a', random: () => 0.5 })
  const startedAt = app.clock.now()
  const ranAt: number[] = []
  app.work(other, ({ attempt }) => {
    ranAt.push(app.clock.now() - startedAt)
    if (attempt < 3) throw new TransientError('again')
  })
  await app.send(other, 'x')
  await app.settled()
  const [first = 0, second = 0, third = 0] = ranAt
  assert.deepEqual([second - first, third - second], [500, 1_000])
  await app.close()
})

test('An inbox on the same transport commits effect, sends and ack together.', async () => {
  const transport = memory()
  const app = await testApp({
    queues: [steps, other],
    transport,
    inbox: memoryInbox({ transport }),
  })
  const followers: string[] = []
  app.work(steps, async ({ attempt }, ctx) => {
    await ctx.tx(async (tx) => {
      await app.send(other, `attempt ${attempt}`, { tx })
      if (attempt < 3) throw new TransientError('rolled back')
    })
  })
  app.work(other, ({ payload }) => {
    followers.push(payload)
  })
  await app.send(steps, { n: 1 })
  await app.settled()
  assert.deepEqual(followers, ['attempt 3'])
  await app.close()
})

test('With a memory inbox a message that comes twice has the effect of one.', async () => {
  const rows: number[] = []
  const app = await testApp({
    queues: [{ ...steps, idempotencyKey: () => 'always the same' }],
    inbox: memoryInbox({ tx: rows }),
  })
  app.work(steps, ({ payload }, ctx) => ctx.tx((tx) => tx.push(payload.n)))
  await app.sendBatch(steps, [{ n: 1 }, { n: 2 }])
  await app.settled()
  assert.equal(rows.length, 1)
  assert.equal(app.counters().steps?.acked, 2)
  await app.close()
})

test('settled() refuses wrong options, gives up with a code, and starts no closed app.', async () => {
  const app = await testApp({ queues: [other] })
  await assert.rejects(app.settled({ maxMS: 5 } as object), { code: 'MILLRACE_INVALID_OPTIONS' })
  await assert.rejects(app.settled({ maxMs: -1 }), { code: 'MILLRACE_INVALID_OPTIONS' })
  await app.send(other, '1')
  await assert.rejects(app.settled(), { code: 'MILLRACE_NOT_SETTLED' })
  await app.close()
  await assert.rejects(app.settled(), { code: 'MILLRACE_CLOSED' })
})

test('Mishaps lose no message; a handler without an inbox runs again where an answer was lost.', async () => {
  const seed = process.env.MILLRACE_SEED ?? String(Date.now())
  const rates = { rejected: 0.15, refused: 0.15, unanswered: 0.15, slow: 0.15 }
  const seen = new Set<string>()
  const onMishap = ({ act }: { readonly act: string }, mishap: string): void =>
    void seen.add(`${act} ${mishap}`)
  const app = await testApp({ queues: [steps], seed, mishaps: { rates, onMishap } })
  const ran = new Set<number>()
  app.work(steps, ({ payload }) => void ran.add(payload.n))
  const all = Array.from({ length: 80 }, (_, n) => n)
  for (const n of all) {
    // As a user sends: until the backend says yes.
    for (let stored = false; !stored; ) {
      stored = await app.send(steps, { n }, { id: `n-${n}` }).then(
        () => true,
        () => false,
      )
    }
  }
  await app.settled()
  // An answer with messages that is lost three times looks like three workers that died with them.
  const { items: dead } = await app.admin.deadLetters.list(steps, { limit: 500 })
  for (const { payload, errorClass } of dead) {
    assert.equal(errorClass, 'crashed')
    ran.add(z.object({ n: z.number() }).parse(payload).n)
  }
  assert.deepEqual([...ran].sort(byValue), all, `seed ${seed}`)
  assert.ok(seen.size >= 8, `seed ${seed}: ${[...seen]}`)
  await app.close()
})

test('What a plan takes from every ack, the next run hears of: without an inbox the effect is made twice.', async () => {
  let isAway = true
  const mishaps: Mishaps = {
    plan: ({ act }) => (act === 'settle' && isAway ? 'rejected' : undefined),
  }
  const app = await testApp({ queues: [steps], mishaps })
  let runs = 0
  app.work(steps, () => {
    runs += 1
    isAway = runs < 2
  })
  await app.send(steps, { n: 1 })
  await app.settled()
  assert.deepEqual([runs, app.counters()['steps']?.acked], [2, 1])
  await app.close()
})

test('Wrong mishaps are refused, each by name.', async () => {
  const wrong = {
    rates: { rejected: 2, refused: Number.NaN, unanswerd: 0.1 },
    plan: 'never',
    slowMs: -1,
  }
  await assert.rejects(
    testApp({ queues: [steps], mishaps: wrong as unknown as Mishaps }),
    (error) => {
      const message = String(error)
      for (const part of [
        'rates.rejected',
        'rates.refused',
        '"mishaps.rates.unanswered"',
        'plan',
        'slowMs',
      ])
        assert.ok(message.includes(part), `${part}: ${message}`)
      return true
    },
  )
  const much = { rates: { rejected: 0.6, slow: 0.6 } }
  await assert.rejects(
    testApp({ queues: [steps], mishaps: much }),
    /mishaps.rates: expected 1 together/,
  )
})

function byValue(a: number, b: number): number {
  return a - b
}
