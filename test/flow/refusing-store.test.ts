import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createMillrace,
  defineQueue,
  OptionsError,
  type QueueOptions,
  silentLogger,
  ThrottledError,
} from 'millrace'
import { memory } from 'millrace/memory'
import { memoryStore, type StoreConnector } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { closeNow, seeded } from '../runtime/stage.ts'

const payload = z.object({ tenant: z.string(), n: z.number() })
type Call = z.infer<typeof payload>
type Limits = Pick<
  QueueOptions<typeof payload>,
  'concurrencyLimit' | 'rateLimit' | 'downstream' | 'gate'
>

/** A store that is stricter than names are here: it is asked, and refuses. */
function strictStore(): StoreConnector {
  const kept = memoryStore()
  const check = (name: string | undefined): void => {
    if (name?.endsWith('odd')) throw new OptionsError('store', [`name: got "${name}"`])
  }
  return {
    ...kept,
    connect: async (context) => {
      const found = await kept.connect(context)
      const { slots, buckets } = found
      return {
        ...found,
        slots: {
          ...slots,
          acquire: async (pool, limits, batch, leaseMs) => {
            for (const { key } of batch) check(key)
            return await slots.acquire(pool, limits, batch, leaseMs)
          },
        },
        buckets: {
          take: async (name, rate, tokens) => {
            check(name)
            return await buckets.take(name, rate, tokens)
          },
        },
      }
    },
  }
}

async function stage(limits: Limits, handler: (call: Call) => void = () => undefined) {
  const clock = virtualClock()
  const calls = defineQueue({ name: 'calls', owner: 'team-flow', payload, ...limits })
  const warnings: string[] = []
  const app = await createMillrace({
    transport: memory(),
    store: strictStore(),
    queues: [calls],
    clock,
    random: seeded(5),
    logger: { ...silentLogger, warn: (line) => void warnings.push(line) },
  })
  const ran: Call[] = []
  app.work(calls, ({ payload: call }) => {
    ran.push(call)
    handler(call)
  })
  await app.start()
  return { app, calls, clock, ran, warnings, close: () => closeNow(app, clock) }
}

const key = ({ tenant }: Call): string => tenant
const limited: readonly (readonly [string, Limits])[] = [
  ['slot (concurrencyLimit)', { concurrencyLimit: { perKey: { key, max: 5 } } }],
  ['token (rateLimit)', { rateLimit: { perKey: { key, perSecond: 1_000 } } }],
]

for (const [what, limits] of limited) {
  test(`A message for which the store takes no ${what} is a dead letter, and keeps no other message waiting.`, async () => {
    const { app, calls, clock, ran, warnings, close } = await stage(limits)
    const tenants = Array.from({ length: 40 }, (_, n) => (n % 7 === 3 ? 'odd' : `t${n % 4}`))
    const sent = await app.sendBatch(
      calls,
      tenants.map((tenant, n) => ({ tenant, n })),
    )
    await clock.advance(2_000)
    assert.deepEqual(
      ran.map(({ n }) => n).sort((a, b) => a - b),
      tenants.flatMap((tenant, n) => (tenant === 'odd' ? [] : [n])),
    )
    const { dead, depth, inFlight, scheduled } = await app.admin.stats(calls)
    assert.deepEqual(
      { dead, depth, inFlight, scheduled },
      { dead: 6, depth: 0, inFlight: 0, scheduled: 0 },
    )
    const odd = sent[3]
    assert.ok(odd)
    const letter = await app.admin.deadLetters.show(calls, odd.id)
    assert.equal(letter?.errorClass, 'permanent')
    assert.ok(
      letter?.reason.startsWith(
        `the store of queue "calls" takes no ${what} for this message (store: name: got "`,
      ),
      letter?.reason,
    )
    assert.deepEqual(
      warnings.filter((line) => line.includes('cannot be counted')),
      [],
      'a store that refuses is not away',
    )
    await close()
  })
}

test('A message for whose downstream the store takes no token (gate) is a dead letter once the pause is over.', async () => {
  const { app, calls, clock, ran, close } = await stage({ downstream: key }, ({ tenant }) => {
    if (tenant === 'odd') throw new ThrottledError('later', { retryAfterMs: 1_000 })
  })
  const { id } = await app.send(calls, { tenant: 'odd', n: 1 })
  await clock.advance(100)
  await app.send(calls, { tenant: 'b', n: 2 })
  await clock.advance(60_000)
  assert.deepEqual(
    ran.map(({ n }) => n),
    [1, 2],
  )
  const letter = await app.admin.deadLetters.show(calls, id)
  assert.match(String(letter?.reason), /^the store of queue "calls" takes no token \(gate\)/)
  await close()
})

test('A slot that the store refuses to take back is asked for once: it ends by itself', async () => {
  const kept = memoryStore()
  let releases = 0
  const store: StoreConnector = {
    ...kept,
    connect: async (context) => {
      const found = await kept.connect(context)
      const release: typeof found.slots.release = () => {
        releases += 1
        return Promise.reject(new OptionsError('store', ['name: it is odd']))
      }
      return { ...found, slots: { ...found.slots, release } }
    },
  }
  const clock = virtualClock()
  const calls = defineQueue({
    ...{ name: 'calls', owner: 'team-flow', payload, concurrencyLimit: { max: 5 } },
  })
  const parts = { transport: memory(), store, queues: [calls], clock, logger: silentLogger }
  const app = await createMillrace(parts)
  app.work(calls, () => undefined)
  await app.start()
  await app.send(calls, { tenant: 'a', n: 1 })
  await clock.advance(20_000)
  assert.equal(releases, 1)
  await closeNow(app, clock)
})
