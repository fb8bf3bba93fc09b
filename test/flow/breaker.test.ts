import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type App,
  type BreakerOptions,
  createMillrace,
  defineQueue,
  PermanentError,
  ThrottledError,
  TransientError,
} from 'millrace'
import { memory } from 'millrace/memory'
import { memoryStore } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { closeNow, seeded } from '../runtime/stage.ts'
import { connectStore } from '../stores/store-harness.ts'

const HOUR_MS = 3_600_000

interface Fleet {
  readonly apps?: number
  /** Handlers of each app. Default 5. */
  readonly concurrency?: number
  readonly store?: 'none'
  readonly breaker?: BreakerOptions
  readonly downstream?: (payload: { readonly host: string }) => string
}

/** Apps that call two hosts: `well` answers, `sick` does what it is told. */
async function fleet(options: Fleet = {}) {
  const clock = virtualClock()
  const transport = memory()
  const store = memoryStore()
  const lines: string[] = []
  const calls = defineQueue({
    name: 'calls',
    owner: 'team-flow',
    payload: z.object({ host: z.string(), n: z.number() }),
    retry: { attempts: 3, baseMs: 1_000, maxMs: 60_000 },
    downstream: options.downstream ?? (({ host }) => host),
    ...(options.breaker ? { breaker: options.breaker } : {}),
  })
  const world = {
    sick: (): unknown => new TransientError('503'),
    runs: [] as { readonly host: string; readonly at: number }[],
    ok: 0,
    running: 0,
    most: 0,
  }
  const open = async (): Promise<App> => {
    const keeps = options.store === 'none' ? {} : { store }
    const { name, connect } = transport
    const app = await createMillrace({
      transport: options.store === 'none' ? { name, connect } : transport,
      queues: [calls],
      clock,
      random: seeded(11 + lines.length),
      logger: {
        debug: () => undefined,
        info: () => undefined,
        warn: (line) => void lines.push(line),
        error: (line) => void lines.push(line),
      },
      ...keeps,
    })
    return app
  }
  const handler = async ({ payload }: { payload: { host: string } }): Promise<void> => {
    world.runs.push({ host: payload.host, at: clock.now() })
    if (payload.host === 'sick') world.most = Math.max(world.most, ++world.running)
    await new Promise<void>((resolve) => clock.after(50, resolve))
    if (payload.host === 'sick') world.running--
    const error = payload.host === 'sick' ? world.sick() : undefined
    if (error !== undefined) throw error
    world.ok++
  }
  const apps: App[] = []
  for (let i = 0; i < (options.apps ?? 1); i++) {
    const app = await open()
    app.work(calls, handler, { concurrency: options.concurrency ?? 5 })
    await app.start()
    apps.push(app)
  }
  const [app] = apps
  assert.ok(app !== undefined)
  const send = (host: string, count: number) =>
    app.sendBatch(
      calls,
      Array.from({ length: count }, (_, n) => ({ host, n })),
    )
  const close = async (): Promise<void> => {
    for (const one of apps) await closeNow(one, clock)
  }
  return { app, apps, calls, clock, lines, open, send, store, world, close }
}

test('A sick downstream is left alone by all, tried by one message of the whole fleet, and buries nothing.', async () => {
  const { app, calls, clock, lines, send, world, close } = await fleet({ apps: 3 })
  await send('sick', 60)
  await send('well', 200)
  await clock.advance(5_000)
  // Until it opened: ten runs, and what was running beside them in three apps.
  const before = world.runs.filter(({ host }) => host === 'sick').length
  assert.ok(before >= 10 && before <= 40, `${before} runs before it opened`)
  assert.equal(world.ok, 200, 'the other downstream goes on')
  assert.ok(lines.some((line) => /breaker of "sick" is open: \d+ of \d+ runs failed/.test(line)))
  const [seen] = await app.admin.breakers.list(calls)
  assert.deepEqual([seen?.downstream, seen?.phase, seen?.held], ['sick', 'open', undefined])
  world.most = 0
  await clock.advance(3 * HOUR_MS)
  const probes = world.runs.filter(({ host }) => host === 'sick').length - before
  assert.equal(world.most, 1, 'one probe at a time in the whole fleet')
  assert.ok(probes >= 20 && probes <= 45, `${probes} probes in three hours of five minutes each`)
  const stats = await app.admin.stats(calls)
  assert.deepEqual([stats.dead, stats.inFlight], [0, 0], 'nothing dies, nothing is held')
  world.sick = () => undefined
  await clock.advance(HOUR_MS)
  assert.equal(world.ok, 260)
  assert.ok(lines.some((line) => line.includes('breaker of "sick" is closed')))
  assert.deepEqual(await app.admin.breakers.list(calls), [])
  assert.equal((await app.admin.stats(calls)).dead, 0)
  await close()
})

test('What waited does not come back at once.', async () => {
  const { clock, send, world, close } = await fleet({
    concurrency: 200,
    breaker: { openMaxMs: 10_000 },
  })
  await send('sick', 2_000)
  await clock.advance(60_000)
  world.sick = () => undefined
  world.runs.length = 0
  await clock.advance(60_000)
  const perSecond = Map.groupBy(world.runs, ({ at }) => Math.floor(at / 1_000))
  const most = Math.max(...[...perSecond.values()].map((runs) => runs.length))
  assert.ok(world.ok === 2_000, String(world.ok))
  // 200 handlers of 50 ms could do all 2,000 in half a second.
  assert.ok(perSecond.size >= 4 && most <= 500, `${most} in ${perSecond.size} seconds`)
  await close()
})

for (const [name, error] of [
  ['permanent failures of payloads', () => new PermanentError('no such address')],
  ['throttled answers', () => new ThrottledError('slowly', { retryAfterMs: 1_000 })],
] as const) {
  test(`It does not open for ${name}.`, async () => {
    const { app, calls, clock, send, world, close } = await fleet()
    world.sick = error
    await send('sick', 100)
    await clock.advance(10_000)
    const open = (await app.admin.breakers.list(calls)).filter(({ phase }) => phase !== 'closed')
    assert.deepEqual(open, [])
    assert.ok(world.runs.length >= 10)
    await close()
  })
}

test('A prober that died keeps the probe until its lease has ended, no longer.', async () => {
  const { clock, send, store, world, close } = await fleet({ apps: 2 })
  const seen = await connectStore(store, clock)
  await send('sick', 100)
  await clock.advance(2_000)
  assert.ok(await seen.leases.acquire('flow:probe:calls:sick', 'somebody who died', 40_000))
  world.runs.length = 0
  await clock.advance(36_000)
  assert.equal(world.runs.length, 0)
  await clock.advance(10_000)
  assert.equal(world.runs.length, 1)
  await seen.close()
  await close()
})

test('It is opened, closed and let go by hand, from a process that works on nothing.', async () => {
  const { calls, clock, open, send, world, close } = await fleet({ apps: 2 })
  const desk = await open()
  world.sick = () => undefined
  await desk.admin.breakers.open(calls, 'sick')
  await clock.advance(2_000)
  await send('well', 1)
  await clock.advance(2_000)
  await send('sick', 50)
  await clock.advance(120_000)
  assert.equal(world.runs.filter(({ host }) => host === 'sick').length, 0)
  assert.equal((await desk.admin.breakers.list('calls'))[0]?.held, 'open')
  await desk.admin.breakers.auto(calls, 'sick')
  await clock.advance(60_000)
  assert.equal(world.ok, 51)
  world.sick = () => new TransientError('503')
  await desk.admin.breakers.close(calls, 'sick')
  await send('well', 1)
  await clock.advance(2_000)
  world.runs.length = 0
  await send('sick', 50)
  await clock.advance(300_000)
  assert.equal(world.runs.length, 150, 'held closed: every attempt is made')
  for (const name of ['', 'x'.repeat(256), 'half \ud800', 'nul \0']) {
    await assert.rejects(
      desk.admin.breakers.open(calls, name),
      /^OptionsError: .*downstream: expected a text of 1 to 255/,
    )
  }
  await closeNow(desk, clock)
  await close()
})

test('With scope process each finds out by itself, and needs no store.', async () => {
  const { apps, calls, clock, send, world, close } = await fleet({
    apps: 2,
    store: 'none',
    breaker: { scope: 'process' },
  })
  await send('sick', 200)
  await clock.advance(5_000)
  const runs = world.runs.length
  assert.ok(runs >= 20 && runs <= 40, String(runs))
  for (const app of apps) assert.equal((await app.admin.breakers.list(calls))[0]?.phase, 'open')
  world.most = 0
  await clock.advance(20_000)
  assert.ok(world.most <= 2, 'a probe for each process')
  await close()
})

test('While the store is away each process goes by what it has seen, and says once that it does.', async () => {
  const inner = memoryStore()
  const clock = virtualClock()
  const lines: string[] = []
  const log = { debug() {}, info() {}, warn: (line: string) => void lines.push(line), error() {} }
  let away = true
  const store: typeof inner = {
    ...inner,
    connect: async (context) => {
      const opened = await inner.connect(context)
      const read: typeof opened.states.read = (name) =>
        away ? Promise.reject(new Error('gone')) : opened.states.read(name)
      return { ...opened, states: { ...opened.states, read } }
    },
  }
  const calls = defineQueue({
    name: 'calls',
    owner: 'team-flow',
    payload: z.number(),
    downstream: () => 'api',
  })
  const app = await createMillrace({
    transport: memory(),
    store,
    queues: [calls],
    clock,
    logger: log,
  })
  let runs = 0
  let fails = true
  app.work(calls, () => {
    runs++
    if (fails) throw new TransientError('503')
  })
  await app.sendBatch(calls, Array<number>(100).fill(1))
  await app.start()
  await clock.advance(60_000)
  assert.ok(runs >= 10 && runs <= 20, `${runs} runs`)
  assert.equal(lines.filter((line) => line.includes('not shared')).length, 1)
  await assert.rejects(app.admin.breakers.list(calls), { code: 'MILLRACE_BACKEND_FAULT' })
  away = false
  fails = false
  await clock.advance(HOUR_MS)
  assert.equal((await app.admin.stats(calls)).scheduled, 0)
  await closeNow(app, clock)
})

test('What is missing or wrong is said before the first message.', async () => {
  await assert.rejects(fleet({ store: 'none' }), {
    code: 'MILLRACE_INVALID_OPTIONS',
    message:
      /store: queue "calls" has a downstream, and its breaker is shared by all workers through a store; .*breaker: \{ scope: 'process' \}/,
  })
  const base = { name: 'q', owner: 'o', payload: z.number() }
  assert.throws(() => defineQueue({ ...base, breaker: {} }), /breaker: needs downstream/)
  const wrong = { scope: 'all', minimum: 0, openMs: 9_000, openMaxMs: 2_000, shares: 1 }
  assert.throws(() => defineQueue({ ...base, downstream: () => 'a', breaker: Object(wrong) }), {
    message:
      'queue "q": unknown option "breaker.shares"; breaker.scope: expected "store" or "process", got "all"; ' +
      'breaker.minimum: expected an integer from 1 to 100000, got 0; breaker.openMs: expected an integer from 100 to 2000, got 9000',
  })
})
