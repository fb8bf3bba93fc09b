import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import {
  createMillrace,
  defineQueue,
  type QueueOptions,
  silentLogger,
  ThrottledError,
  TransientError,
} from 'millrace'
import { z } from 'zod'
import { sideBySide } from '../side-by-side.ts'
import { until } from '../transports/until.ts'
import { type OrderingPlace, orderingPlaces } from './order-places.ts'
import { orderedRuns } from './ordered-runs.ts'

/** Each in a lane of its own, of 16: by CRC-32 (NATS, RabbitMQ) and by murmur2 (Kafka). */
const SICK = ['sick-0', 'sick-2', 'sick-5']
const WELL = ['well-0', 'well-1', 'well-3']
const KEYS = [...SICK, ...WELL]
const PER_KEY = 6
const ATTEMPTS = 3
const DEADLINE_MS = 60_000

const payload = z.object({ key: z.string(), n: z.number() })
type Call = z.output<typeof payload>
type Limits = Pick<
  QueueOptions<typeof payload>,
  'downstream' | 'breaker' | 'gate' | 'rateLimit' | 'concurrencyLimit'
>

let made = 0

/** Two apps with one queue, whose handlers fail as `fails` says. */
async function fleetAt(
  t: TestContext,
  place: OrderingPlace,
  limits: Limits,
  fails: (call: Call) => Error | undefined,
) {
  const name = `behind-${process.pid}-${Date.now().toString(36)}-${++made}`
  const queue = defineQueue({
    name,
    owner: 'team-flow',
    payload,
    orderingKey: ({ key }) => key,
    onDead: 'continue',
    retry: { attempts: ATTEMPTS, baseMs: 20, maxMs: 100 },
    ...limits,
  })
  const { options, dispose } = await place.open(name)
  t.after(dispose)
  const seen = orderedRuns()
  const open = async () => {
    const app = await createMillrace({ ...options(), queues: [queue], logger: silentLogger })
    t.after(() => app.close({ timeoutMs: 5_000 }))
    const handler = async ({ payload: call, attempt }: { payload: Call; attempt: number }) => {
      const run = seen.began(call, attempt)
      await wait(2)
      const error = fails(call)
      run.end = error === undefined ? 'done' : 'refused'
      if (error !== undefined) throw error
    }
    app.work(queue, handler, { concurrency: 8 })
    await app.start()
    return app
  }
  const apps = [await open(), await open()] as const
  const [app] = apps
  const calls = Array.from({ length: PER_KEY }, (_, at) => KEYS.map((key) => ({ key, n: at + 1 })))
  return {
    app,
    queue,
    seen,
    send: () => app.sendBatch(queue, calls.flat()),
    areDone: (keys: readonly string[]): boolean =>
      keys.every((key) => seen.done(key).length >= PER_KEY),
    /** Given back without a run: they waited for their turn. */
    waits: (): number =>
      apps.reduce((sum, one) => sum + (one.counters()[name]?.released ?? 0), 0) - seen.refused(),
    /** Each was done in its turn, and none was blamed. */
    verdict: async (): Promise<void> => {
      await until('nothing is left', async () => {
        const { depth = 0, inFlight = 0, scheduled = 0 } = await app.admin.stats(queue)
        return depth + inFlight + scheduled === 0
      })
      seen.assertInOrder(KEYS, PER_KEY)
      assert.equal((await app.admin.stats(queue)).dead ?? 0, 0)
    },
  }
}

const { test, run } = sideBySide('a queue in order')

for (const place of orderingPlaces()) {
  test(`${place.name}: while a breaker is open its keys wait in their order and uncounted, and those of another downstream go on`, async (t) => {
    let isSick = true
    const breaker = { minimum: 2, openMs: 200, openMaxMs: 1_000 }
    const fleet = await fleetAt(t, place, { downstream: hostOf, breaker }, ({ key }) =>
      isSick && SICK.includes(key) ? new TransientError('503') : undefined,
    )
    const { app, queue, seen } = fleet
    await fleet.send()
    // More than all heads had attempts for, if they were counted.
    const tries = ATTEMPTS * SICK.length
    await until(`${tries} tries`, () => seen.refused() >= tries, DEADLINE_MS)
    await until('one waits for it', () => fleet.waits() > 0, DEADLINE_MS)
    await until('the others are done', () => fleet.areDone(WELL), DEADLINE_MS)
    const [found] = await app.admin.breakers.list(queue)
    assert.equal(found?.downstream, 'sick')
    isSick = false
    await until('all are done', () => fleet.areDone(KEYS), DEADLINE_MS)
    await fleet.verdict()
    const successors = seen.runs.filter(({ n }) => n > 1)
    assert.deepEqual(new Set(successors.map(({ attempt }) => attempt)), new Set([1]))
  })

  test(`${place.name}: while a gate is closed its keys wait in their order and uncounted, and those of another downstream go on`, async (t) => {
    let isClosed = true
    // One at a time: of heads that come back at once all others wait, and are not refused.
    const gate = { startPerSecond: 1, stepMs: 1_000 }
    const fleet = await fleetAt(t, place, { downstream: hostOf, gate }, ({ key }) =>
      isClosed && SICK.includes(key)
        ? new ThrottledError('429', { retryAfterMs: 1_000 })
        : undefined,
    )
    await fleet.send()
    const tries = ATTEMPTS + 1
    await until(`${tries} tries`, () => fleet.seen.refused() >= tries, DEADLINE_MS)
    await until('one waits for it', () => fleet.waits() > 0, DEADLINE_MS)
    await until('the others are done', () => fleet.areDone(WELL), DEADLINE_MS)
    isClosed = false
    await until('all are done', () => fleet.areDone(KEYS), DEADLINE_MS)
    await fleet.verdict()
    assert.deepEqual(new Set(fleet.seen.runs.map(({ attempt }) => attempt)), new Set([1]))
  })

  test(`${place.name}: what waits for a rate or a slot keeps its key's order, uncounted`, async (t) => {
    const fleet = await fleetAt(
      t,
      place,
      {
        rateLimit: {
          perSecond: 20,
          burst: 2,
          perKey: { key: ({ key }) => key, perSecond: 5, burst: 1 },
        },
        concurrencyLimit: { max: 2 },
      },
      () => undefined,
    )
    await fleet.send()
    await until('all are done', () => fleet.areDone(KEYS), DEADLINE_MS)
    assert.ok(fleet.waits() > 0, 'nothing waited')
    await fleet.verdict()
    assert.deepEqual(new Set(fleet.seen.runs.map(({ attempt }) => attempt)), new Set([1]))
  })
}

run(8)

function hostOf({ key }: Call): string {
  return SICK.includes(key) ? 'sick' : 'well'
}
