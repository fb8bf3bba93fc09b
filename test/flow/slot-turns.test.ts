import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { memory } from 'millrace/memory'
import { sqlite } from 'millrace/sqlite'
import { memoryStore, type StoreConnector } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { type Clock, pause, systemClock } from '../../src/model/clock.ts'
import { mortalProcess } from '../property/mortal-process.ts'
import { closeNow } from '../runtime/stage.ts'
import { until } from '../transports/until.ts'

const SLOTS = 2
const SHORT_MS = 5

const queueNamed = (name: string) =>
  defineQueue({
    ...{ name, owner: 'team-flow', handlerTimeoutMs: 3_600_000 },
    payload: z.object({ tenant: z.string(), n: z.number() }),
    concurrencyLimit: { perKey: { key: ({ tenant }) => tenant, max: SLOTS } },
  })

const calls = (tenant: string, many: number) =>
  Array.from({ length: many }, (_, n) => ({ tenant, n }))

/** A store that counts how many were refused a slot. */
function countingStore() {
  const kept = memoryStore()
  const seen = { refused: 0 }
  const store: StoreConnector = {
    ...kept,
    connect: async (context) => {
      const found = await kept.connect(context)
      const { slots } = found
      const acquire: typeof slots.acquire = async (...given) => {
        const answers = await slots.acquire(...given)
        seen.refused += answers.filter(({ as }) => as === 'full').length
        return answers
      }
      return { ...found, slots: { ...slots, acquire } }
    },
  }
  return { store, seen }
}

/** Processes with one queue; `takesMs` says how long a handler takes, by how many began in all. */
function processes(takesMs: (began: number) => number) {
  const clock = virtualClock()
  const transport = memory()
  const { store, seen } = countingStore()
  const queue = queueNamed('calls')
  const ran = { began: 0, ended: 0 }
  const open = async (own: Clock = clock) => {
    const parts = { transport, store, queues: [queue], clock: own, logger: silentLogger }
    const app = await createMillrace(parts)
    app.work(
      queue,
      async () => {
        await pause(own, takesMs(ran.began++))
        ran.ended += 1
      },
      { concurrency: 100 },
    )
    return app
  }
  return { clock, queue, open, ran, seen }
}

/** How long it took, in steps of 100 ms; infinite when it was not so within `withinMs`. */
async function timeTo(
  clock: ReturnType<typeof virtualClock>,
  isSo: () => boolean,
  withinMs: number,
): Promise<number> {
  for (let ms = 0; ms <= withinMs; ms += 100) {
    if (isSo()) return ms
    await clock.advance(100)
  }
  return Number.POSITIVE_INFINITY
}

for (const many of [20, 300]) {
  test(`When the first runs of a key took 10 s and the others take 5 ms, ${many} that waited are done in three times what the slots need.`, async () => {
    const slowMs = 10_000
    const { clock, queue, open, ran } = processes((began) => (began < SLOTS ? slowMs : SHORT_MS))
    const app = await open()
    await app.start()
    await app.sendBatch(queue, calls('a', many))
    const neededMs = slowMs + (many * SHORT_MS) / SLOTS
    const tookMs = await timeTo(clock, () => ran.ended === many, 3 * neededMs)
    assert.ok(tookMs <= 3 * neededMs, `${ran.ended} of ${many} in ${3 * neededMs} ms`)
    await closeNow(app, clock)
  })
}

test('A worker that drains for 8 s with all slots of a key leaves the next one nothing that comes much later than the slots.', async () => {
  const { clock, queue, open, ran } = processes((began) => (began < SLOTS ? 8_000 : SHORT_MS))
  const before = await open()
  const next = await open()
  await before.start()
  await before.sendBatch(queue, calls('a', 300))
  assert.ok((await timeTo(clock, () => ran.began === SLOTS, 1_000)) <= 1_000)
  const drained = before.close({ timeoutMs: 30_000 })
  await next.start()
  const tookMs = await timeTo(clock, () => ran.ended === 300, 26_000)
  assert.ok(tookMs <= 26_000, `${ran.ended} of 300 in 26 s`)
  await drained
  await closeNow(next, clock)
})

test('What waited for the slots of a worker that died is done soon after they have ended.', async () => {
  const { clock, queue, open, ran } = processes((began) => (began < SLOTS ? 3_600_000 : SHORT_MS))
  const mortal = mortalProcess(clock)
  const killed = await open(mortal.clock)
  const other = await open()
  await killed.start()
  await killed.sendBatch(queue, calls('a', 300))
  assert.ok((await timeTo(clock, () => ran.began === SLOTS, 1_000)) <= 1_000)
  mortal.kill()
  await other.start()
  const freeMs = await timeTo(clock, () => ran.began > SLOTS, 120_000)
  assert.ok(freeMs <= 40_000, `the first began after ${freeMs} ms`)
  // The two that it had in hand wait for their own leases, not for a slot.
  const tookMs = await timeTo(clock, () => ran.ended >= 290, 2 * freeMs)
  assert.ok(tookMs <= 2 * freeMs, `${ran.ended} of 300 in ${2 * freeMs} ms behind ${freeMs} ms`)
  await closeNow(other, clock)
})

test('Handlers that are quick keep all slots of a key busy, however many it has.', async () => {
  const clock = virtualClock()
  const queue = defineQueue({
    ...{ name: 'calls', owner: 'team-flow' },
    payload: z.object({ tenant: z.string(), n: z.number() }),
    concurrencyLimit: { perKey: { key: ({ tenant }) => tenant, max: 20 } },
  })
  const parts = { transport: memory(), queues: [queue], clock, logger: silentLogger }
  const app = await createMillrace(parts)
  let ended = 0
  app.work(queue, () => pause(clock, 20).then(() => void ended++), { concurrency: 40 })
  await app.start()
  await app.sendBatch(queue, calls('a', 2_000))
  const tookMs = await timeTo(clock, () => ended === 2_000, 4_000)
  assert.ok(tookMs <= 4_000, `${ended} of 2,000, with 20 at a time of 20 ms, in 4 s`)
  await closeNow(app, clock)
})

for (const keys of [1, 20]) {
  test(`Thousands that wait for a slot of ${keys === 1 ? 'one key' : `${keys} keys`} are asked for at a bounded rate in a process.`, async () => {
    const { clock, queue, open, seen } = processes(() => 30_000)
    const app = await open()
    await app.start()
    for (let k = 0; k < keys; k++) await app.sendBatch(queue, calls(`t-${k}`, 4_000 / keys))
    const perSecond = async (forMs: number): Promise<number> => {
      const before = seen.refused
      await clock.advance(forMs)
      return ((seen.refused - before) * 1_000) / forMs
    }
    await clock.advance(12_000)
    const unknown = await perSecond(16_000)
    assert.ok(unknown <= 110, `${unknown} a second while no handler has ended`)
    await clock.advance(300_000)
    const known = await perSecond(120_000)
    assert.ok(known <= 30, `${known} a second`)
    await closeNow(app, clock)
  })
}

test('What comes when only few waited for slow handlers is no line far ahead either: when they are quick at last, it is done soon.', async () => {
  let isSlow = true
  const { clock, queue, open, ran } = processes(() => (isSlow ? 10_000 : SHORT_MS))
  const app = await open()
  await app.start()
  await app.sendBatch(queue, calls('a', 12))
  await clock.advance(35_000)
  await app.sendBatch(queue, calls('a', 300))
  await clock.advance(1_000)
  isSlow = false
  const tookMs = await timeTo(clock, () => ran.ended === 312, 32_000)
  assert.ok(tookMs <= 32_000, `${ran.ended} of 312 in 32 s`)
  await closeNow(app, clock)
})

test('Few that wait ask ever more seldom while their key is full.', async () => {
  const { clock, queue, open, seen } = processes(() => 100_000)
  const app = await open()
  await app.start()
  await app.sendBatch(queue, calls('a', SLOTS + 8))
  await clock.advance(90_000)
  assert.ok(seen.refused <= 8 * 30, `${seen.refused} times in 90 s`)
  await closeNow(app, clock)
})

test('A long line of slow handlers comes back about twice as often as it can run, and a few looks a second more.', async () => {
  const { clock, queue, open, ran, seen } = processes(() => 2_000)
  const app = await open()
  await app.start()
  await app.sendBatch(queue, calls('a', 300))
  await clock.advance(60_000)
  const before = { ...ran, ...seen }
  await clock.advance(60_000)
  const ended = ran.ended - before.ended
  assert.ok(ended >= 57, `${ended} of 60 possible`)
  const refused = (seen.refused - before.refused) / 60
  assert.ok(refused <= 25, `${refused} a second`)
  await closeNow(app, clock)
})

test('sqlite: after two slow runs of a key those that waited come back soon.', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-slot-turns-'))
  const clock = systemClock()
  const queue = queueNamed('calls')
  const app = await createMillrace({
    ...{ transport: sqlite({ file: join(folder, 'app.db') }), queues: [queue] },
    logger: silentLogger,
  })
  const ran = { began: 0, ended: 0 }
  app.work(queue, async () => {
    await pause(clock, ran.began++ < SLOTS ? 3_000 : SHORT_MS)
    ran.ended += 1
  })
  try {
    await app.sendBatch(queue, calls('a', 120))
    await app.start()
    await until('all have run', async () => ran.ended === 120, 10_000)
    const { depth, scheduled, inFlight } = await app.admin.stats(queue)
    assert.deepEqual([depth, scheduled, inFlight], [0, 0, 0])
  } finally {
    await app.close({ timeoutMs: 1_000 })
    await rm(folder, { recursive: true, force: true })
  }
})
