import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import {
  type App,
  type ConcurrencyLimitOptions,
  createMillrace,
  defineQueue,
  silentLogger,
} from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { memory } from 'millrace/memory'
import { memoryStore, type StoreConnector } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { pause } from '../../src/model/clock.ts'
import { read } from '../../src/model/probe.ts'
import { mortalProcess } from '../property/mortal-process.ts'
import { closeNow } from '../runtime/stage.ts'
import { type LimitedCall, limitedRuns } from './limited-runs.ts'

const base = {
  name: 'calls',
  owner: 'team-flow',
  payload: z.object({ tenant: z.string(), n: z.number() }),
  retry: { attempts: 1 },
}

interface FleetOptions {
  readonly apps?: number
  readonly concurrency?: number
  readonly handlerMs?: number
  /** Once its signal has fired. */
  readonly stopsAfterMs?: number
  readonly store?: StoreConnector
}

async function fleet(
  concurrencyLimit: ConcurrencyLimitOptions<LimitedCall>,
  options: FleetOptions = {},
) {
  const { apps: count = 3, concurrency = 10, handlerMs = 200, stopsAfterMs = 0 } = options
  const { store = memoryStore() } = options
  const clock = virtualClock()
  const transport = memory()
  const queue = defineQueue({ ...base, handlerTimeoutMs: 60_000, concurrencyLimit })
  const { seen, began, ended } = limitedRuns()
  const apps: App[] = []
  for (let i = 0; i < count; i++) {
    const parts = { transport, store, queues: [queue], clock, logger: silentLogger }
    const app = await createMillrace(parts)
    app.work(
      queue,
      async ({ payload }, { signal }) => {
        began(payload)
        await pause(clock, handlerMs, signal).catch(() => undefined)
        if (signal.aborted) await pause(clock, stopsAfterMs)
        ended(payload)
        signal.throwIfAborted()
      },
      { concurrency },
    )
    await app.start()
    apps.push(app)
  }
  const [app] = apps
  assert.ok(app)
  const send = (tenant: string, many: number) =>
    app.sendBatch(
      queue,
      Array.from({ length: many }, (_, n) => ({ tenant, n })),
    )
  const close = async (): Promise<void> => {
    for (const one of apps) await closeNow(one, clock)
  }
  return { app, apps, clock, queue, seen, send, close, store, transport }
}

test('All workers together run no more than the queue’s limit, and keep it busy.', async () => {
  const { app, clock, queue, seen, send, close } = await fleet({ max: 4 })
  await send('a', 200)
  await clock.advance(5_000)
  assert.equal(seen.most, 4)
  assert.ok(seen.ended >= 95, `${seen.ended} of 100 possible in 5 s`)
  await clock.advance(6_000)
  assert.equal(seen.ended, 200, 'one attempt was enough for each: waiting costs none')
  const { dead, inFlight, scheduled } = await app.admin.stats(queue)
  assert.deepEqual([dead, inFlight, scheduled], [0, 0, 0])
  await close()
})

test('A key runs no more than its limit, and delays no other key.', async () => {
  const { clock, seen, send, close } = await fleet({
    perKey: { key: ({ tenant }) => tenant, max: 1 },
  })
  await send('noisy', 100)
  await clock.advance(2_000)
  await send('quiet', 1)
  await clock.advance(300)
  assert.ok(seen.runs.some(({ tenant }) => tenant === 'quiet'))
  assert.equal(seen.mostOfKey, 1)
  await clock.advance(60_000)
  assert.equal(seen.ended, 101)
  assert.equal(seen.mostOfKey, 1)
  await close()
})

/** A store whose slots nobody can ask for while it is away. */
function awayStore() {
  const kept = memoryStore()
  const state = { away: false, losesAnswers: 0, losesReleases: 0, releases: 0 }
  const asked = <T>(call: () => Promise<T>): Promise<T> =>
    state.away ? Promise.reject(new Error('connection refused')) : call()
  const store: StoreConnector = {
    ...kept,
    connect: async (context) => {
      const found = await kept.connect(context)
      const { slots } = found
      return {
        ...found,
        slots: {
          acquire: async (...given) => {
            const answers = await asked(() => slots.acquire(...given))
            if (state.losesAnswers-- > 0) throw new Error('connection reset')
            return answers
          },
          renew: (...given) => asked(() => slots.renew(...given)),
          release: async (...given) => {
            state.releases += 1
            if (state.losesReleases-- > 0) throw new Error('connection reset')
            await asked(() => slots.release(...given))
          },
          count: (...given) => asked(() => slots.count(...given)),
        },
      }
    },
  }
  return { store, state }
}

test('While the store is away nothing begins; what runs is told to stop before its slot is given to another, and costs no attempt.', async () => {
  const { store, state } = awayStore()
  const { app, clock, queue, seen, send, close } = await fleet(
    { max: 2 },
    { store, handlerMs: 25_000 },
  )
  await send('a', 3)
  await clock.advance(1_000)
  assert.equal(seen.runs.length, 2)
  state.away = true
  await clock.advance(22_000)
  assert.equal(seen.runs.length, 2, 'they run on while the store may come back')
  await clock.advance(60_000)
  assert.equal(seen.ended, 2)
  assert.equal(seen.runs.length, 2, 'nothing began meanwhile')
  state.away = false
  await clock.advance(120_000)
  assert.equal(seen.most, 2)
  const { dead, inFlight, scheduled } = await app.admin.stats(queue)
  assert.deepEqual([dead, inFlight, scheduled], [0, 0, 0])
  await close()
})

test('Neither an answer of the store that was lost nor a slot that could not be given back is leaked: both are tried again.', async () => {
  const { store, state } = awayStore()
  const { app, clock, queue, seen, send, close } = await fleet({ max: 1 }, { store, apps: 1 })
  state.losesAnswers = 2
  state.losesReleases = 2
  await send('a', 3)
  await clock.advance(2_000)
  assert.equal(seen.ended, 3)
  assert.equal((await app.admin.slots(queue))?.held, 0)
  await close()
})

test('While the store is away one message at a time is taken to ask for it.', async () => {
  const { store, state } = awayStore()
  const { app, clock, queue, send, close } = await fleet({ max: 10 }, { store, apps: 1 })
  state.away = true
  await send('a', 50)
  await clock.advance(60_000)
  const seen: number[] = []
  for (let s = 0; s < 10; s++) {
    await clock.advance(1_000)
    seen.push((await app.admin.stats(queue)).inFlight ?? 0)
  }
  assert.ok(Math.max(...seen) === 1, seen.join(' '))
  await close()
})

test('When the store comes back while handlers are still stopping, nothing begins beside them.', async () => {
  const { store, state } = awayStore()
  const { clock, seen, send, close } = await fleet(
    { max: 1 },
    { store, handlerMs: 50_000, stopsAfterMs: 4_900 },
  )
  await send('a', 3)
  await clock.advance(1_000)
  state.away = true
  await clock.advance(31_000)
  assert.deepEqual([seen.runs.length, seen.ended], [1, 0])
  state.away = false
  await clock.advance(600_000)
  assert.deepEqual([seen.most, seen.ended >= 3], [1, true])
  await close()
})

test('A handler whose slot is lost is told why, and its message runs again with the same attempt.', async () => {
  const { store, state } = awayStore()
  const clock = virtualClock()
  const limit = { retry: { attempts: 2 }, handlerTimeoutMs: 600_000, concurrencyLimit: { max: 1 } }
  const queue = defineQueue({ ...base, ...limit })
  const lines: string[] = []
  const logger = { ...silentLogger, warn: (line: string) => void lines.push(line) }
  const app = await createMillrace({ transport: memory(), store, queues: [queue], clock, logger })
  const attempts: number[] = []
  const reasons: unknown[] = []
  app.work(queue, async ({ attempt }, { signal }) => {
    attempts.push(attempt)
    if (attempts.length > 1) return
    await pause(clock, 600_000, signal).catch(() => undefined)
    reasons.push(signal.reason)
    signal.throwIfAborted()
  })
  await app.start()
  await app.send(queue, { tenant: 'a', n: 1 }, {})
  await clock.advance(1_000)
  assert.deepEqual(await app.admin.slots(queue), {
    queue: 'calls',
    max: 1,
    maxPerKey: undefined,
    held: 1,
    keys: [],
  })
  state.away = true
  await clock.advance(29_000)
  await clock.advance(5_000)
  const [reason] = reasons
  assert.ok(reason instanceof Error && 'code' in reason)
  assert.equal(reason.code, 'MILLRACE_SLOT_LOST')
  assert.ok(lines.some((line) => /slots .*cannot be renewed/.test(line)))
  assert.ok(lines.some((line) => /has lost its slot/.test(line)))
  state.away = false
  await clock.advance(30_000)
  assert.deepEqual(attempts, [1, 1])
  assert.equal((await app.admin.slots(queue))?.held, 0)
  await closeNow(app, clock)
})

test('A process that was stopped commits nothing once its slot has ended, though no timer has told it yet.', async () => {
  const clock = virtualClock()
  const mortal = mortalProcess(clock)
  const queue = defineQueue({
    ...base,
    handlerTimeoutMs: 600_000,
    concurrencyLimit: { max: 1 },
  })
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE effect (n INTEGER)')
  const app = await createMillrace({
    ...{ transport: memory(), queues: [queue], clock: mortal.clock, logger: silentLogger },
    inbox: sqliteInbox({ db }),
  })
  const woken = Promise.withResolvers<void>()
  const codes: unknown[] = []
  app.work(queue, async ({ payload }, ctx) => {
    await woken.promise
    await ctx
      .tx((tx) => void tx.prepare('INSERT INTO effect (n) VALUES (?)').run(payload.n))
      .catch((error: unknown) => codes.push(read(error, 'code')))
  })
  await app.start()
  await app.send(queue, { tenant: 'a', n: 1 })
  await clock.advance(1_000)
  mortal.stop()
  await clock.advance(40_000)
  woken.resolve()
  await clock.advance(0)
  assert.deepEqual(codes, ['MILLRACE_SLOT_LOST'])
  assert.deepEqual(db.prepare('SELECT n FROM effect').all(), [])
  mortal.go()
  await closeNow(app, clock)
  db.close()
})

test('A worker that closes gives back its slots and what waits for one, at once.', async () => {
  const { apps, clock, queue, seen, send, store, transport } = await fleet(
    { max: 1 },
    { apps: 2, handlerMs: 10_000 },
  )
  await send('a', 8)
  await clock.advance(1_000)
  assert.equal(seen.runs.length, 1)
  const closing = Promise.all(apps.map((app) => app.close({ timeoutMs: 20_000 })))
  await clock.advance(100)
  await clock.advance(15_000)
  await closing
  assert.deepEqual([seen.runs.length, seen.ended], [1, 1])
  const look = await createMillrace({
    transport,
    store,
    queues: [queue],
    clock,
    logger: silentLogger,
  })
  assert.equal((await look.admin.slots(queue))?.held, 0)
  const { depth, inFlight } = await look.admin.stats(queue)
  assert.deepEqual([depth, inFlight], [7, 0])
  await closeNow(look, clock)
})

test('A close waits within its time until the store has its slots back, however often it asks for that.', async () => {
  const { store, state } = awayStore()
  const { apps, clock, queue, send, transport } = await fleet(
    { max: 1 },
    { store, apps: 2, handlerMs: 10_000 },
  )
  await send('a', 1)
  await clock.advance(9_000)
  state.away = true
  let closed = 0
  const closing = apps.map((one) => one.close({ timeoutMs: 30_000 }).finally(() => closed++))
  await clock.advance(10_000)
  assert.equal(closed, 1, 'the one that ran the message has its slot still')
  state.away = false
  await clock.advance(1_000)
  await Promise.all(closing)
  const parts = { transport, store, queues: [queue], clock, logger: silentLogger }
  const look = await createMillrace(parts)
  assert.equal((await look.admin.slots(queue))?.held, 0)
  await closeNow(look, clock)
})

test('A close takes no longer than its time for slots that the store does not take back.', async () => {
  const { store, state } = awayStore()
  const { app, clock, seen, send } = await fleet({ max: 1 }, { store, apps: 1, handlerMs: 5_000 })
  await send('a', 1)
  await clock.advance(4_000)
  state.away = true
  let isClosed = false
  const closing = app.close({ timeoutMs: 8_000 }).then(() => {
    isClosed = true
  })
  await clock.advance(7_900)
  assert.deepEqual([seen.ended, isClosed], [1, false])
  await clock.advance(500)
  await closing
  const { releases } = state
  assert.ok(releases > 5 && releases < 30, `tried ${releases} times in 7 s`)
  await clock.advance(60_000)
  assert.equal(state.releases, releases, 'nothing is tried behind the end')
  assert.equal(clock.nextDueAt(), undefined, 'and no timer keeps the process')
})

test('A message that a breaker or a rate keeps back holds no slot.', async () => {
  const clock = virtualClock()
  const queue = defineQueue({
    ...base,
    concurrencyLimit: { max: 2 },
    rateLimit: { perSecond: 1, burst: 1 },
  })
  const app = await createMillrace({
    ...{ transport: memory(), queues: [queue], clock, logger: silentLogger },
  })
  let ran = 0
  app.work(queue, () => void ran++)
  await app.start()
  await app.sendBatch(
    queue,
    Array.from({ length: 20 }, (_, n) => ({ tenant: 'a', n })),
  )
  await clock.advance(1_500)
  assert.ok(ran >= 1 && ran <= 3, `${ran}`)
  assert.equal((await app.admin.slots(queue))?.held, 0)
  await clock.advance(25_000)
  assert.equal(ran, 20)
  await closeNow(app, clock)
})

test('In a queue in order the key waits with its message, and order holds.', async () => {
  const clock = virtualClock()
  const queue = defineQueue({
    ...base,
    orderingKey: ({ tenant }) => tenant,
    onDead: 'continue',
    concurrencyLimit: { max: 2 },
  })
  const app = await createMillrace({
    ...{ transport: memory(), queues: [queue], clock, logger: silentLogger },
  })
  const { seen, began, ended } = limitedRuns()
  app.work(queue, async ({ payload }) => {
    began(payload)
    await pause(clock, 50)
    ended(payload)
  })
  await app.start()
  for (const tenant of ['a', 'b', 'c', 'd']) {
    await app.sendBatch(
      queue,
      Array.from({ length: 10 }, (_, n) => ({ tenant, n })),
    )
  }
  await clock.advance(60_000)
  assert.deepEqual([seen.most, seen.mostOfKey, seen.ended], [2, 1, 40])
  for (const tenant of ['a', 'b', 'c', 'd']) {
    const numbers = seen.runs.filter((one) => one.tenant === tenant).map(({ n }) => n)
    assert.deepEqual(
      numbers,
      numbers.toSorted((x, y) => x - y),
    )
  }
  await closeNow(app, clock)
})

test('With scope process each process counts its own, and no store is needed.', async () => {
  const { name, connect } = memory()
  const transport = { name, connect }
  const clock = virtualClock()
  const own = defineQueue({ ...base, concurrencyLimit: { max: 2, scope: 'process' } })
  const app = await createMillrace({ transport, queues: [own], clock, logger: silentLogger })
  const { seen, began, ended } = limitedRuns()
  app.work(own, async ({ payload }) => {
    began(payload)
    await pause(clock, 100)
    ended(payload)
  })
  await app.start()
  await app.sendBatch(
    own,
    Array.from({ length: 20 }, (_, n) => ({ tenant: 'a', n })),
  )
  await clock.advance(1_100)
  assert.deepEqual([seen.most, seen.ended], [2, 20])
  await closeNow(app, clock)
})

test('What is missing or wrong with a limit is said before the first message.', async () => {
  const shared = defineQueue({ ...base, concurrencyLimit: { max: 1 } })
  // A broker, which is no store.
  const { name, connect } = memory()
  await assert.rejects(createMillrace({ transport: { name, connect }, queues: [shared] }), {
    code: 'MILLRACE_INVALID_OPTIONS',
    message:
      /store: queue "calls" has a concurrencyLimit .*concurrencyLimit: \{ scope: 'process' \}/,
  })
  for (const [concurrencyLimit, message] of [
    [{}, /concurrencyLimit: expected max, perKey or both/],
    [{ max: 0 }, /concurrencyLimit.max: expected an integer from 1 to 100000, got 0/],
    [{ perKey: { max: 1 } }, /concurrencyLimit.perKey.key: expected a function of the payload/],
    [{ perKey: { key: String } }, /concurrencyLimit.perKey.max: expected an integer from 1/],
    [{ maxx: 1 }, /unknown option "concurrencyLimit.maxx", did you mean "concurrencyLimit.max"/],
    [{ max: 1, scope: 'all' }, /concurrencyLimit.scope: expected "store" or "process", got "all"/],
    [5, /concurrencyLimit: expected \{ max, perKey, scope \}, got 5; how many run in one process/],
  ] as const) {
    assert.throws(() => defineQueue(Object({ ...base, concurrencyLimit })), message)
  }
})

test('No more workers are recommended than the limit can keep busy; a limit of each process says nothing of their number.', async () => {
  const clock = virtualClock()
  const limit = { max: 12 }
  const wish = { handlerMs: 1_000, arrivalsPerSecond: 100, concurrency: 10 }
  const workersFor = async (
    concurrencyLimit: ConcurrencyLimitOptions<LimitedCall>,
  ): Promise<number | undefined> => {
    const queue = defineQueue({ ...base, concurrencyLimit })
    const app = await createMillrace({ transport: memory(), queues: [queue], clock })
    const { workers } = await app.admin.scale(queue, wish)
    await closeNow(app, clock)
    return workers
  }
  assert.equal(await workersFor(limit), 2)
  assert.equal(await workersFor({ ...limit, scope: 'process' }), 13)
})

test('Without a limit nobody is asked, and admin says that there is none.', async () => {
  const clock = virtualClock()
  const queue = defineQueue(base)
  const app = await createMillrace({ transport: memory(), queues: [queue], clock })
  assert.equal(await app.admin.slots(queue), null)
  assert.equal(app.admin.backend().store, undefined)
  await closeNow(app, clock)
})
