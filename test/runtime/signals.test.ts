import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, onSignals, silentLogger } from 'millrace'
import { memory } from 'millrace/memory'
import { virtualClock } from '../../src/testing/virtual-clock.ts'
import { orderSchema, stage } from './stage.ts'

type Name = 'SIGINT' | 'SIGTERM'

/** Answers the listeners of a signal that were added since. */
function listenersFromNow(): (name: Name) => readonly NodeJS.SignalsListener[] {
  const before = new Set<unknown>([...process.listeners('SIGINT'), ...process.listeners('SIGTERM')])
  return (name) => process.listeners(name).filter((one) => !before.has(one))
}

/** Listens on a virtual clock; `arrive` reaches only the listener under test, not the test runner's. */
function listening(t: TestContext) {
  const clock = virtualClock()
  const ours = listenersFromNow()
  const heard: string[] = []
  const stop = onSignals(
    {
      first: (name) => heard.push(`first ${name}`),
      second: (name) => heard.push(`second ${name}`),
    },
    clock,
  )
  t.after(stop)
  return {
    heard,
    stop,
    count: () => ours('SIGINT').length + ours('SIGTERM').length,
    ours,
    arrive: async (name: Name, afterMs = 0) => {
      await clock.advance(afterMs)
      for (const listener of ours(name)) listener(name)
    },
  }
}

const cases: readonly (readonly [
  what: string,
  signals: readonly (readonly [Name, number])[],
  expected: readonly string[],
])[] = [
  [
    'one Ctrl-C that npm hands on is one',
    [
      ['SIGINT', 0],
      ['SIGINT', 1],
    ],
    ['first SIGINT'],
  ],
  [
    'npm within npm hands it on twice',
    [
      ['SIGINT', 0],
      ['SIGINT', 1],
      ['SIGINT', 99],
    ],
    ['first SIGINT'],
  ],
  [
    'a second Ctrl-C aborts, once',
    [
      ['SIGINT', 0],
      ['SIGINT', 1],
      ['SIGINT', 100],
      ['SIGINT', 1],
    ],
    ['first SIGINT', 'second SIGINT'],
  ],
  [
    'a SIGTERM to npm and its children is one',
    [
      ['SIGTERM', 0],
      ['SIGTERM', 1],
    ],
    ['first SIGTERM'],
  ],
  [
    "a supervisor's second SIGTERM aborts, soon after the first",
    [
      ['SIGTERM', 0],
      ['SIGTERM', 6],
    ],
    ['first SIGTERM', 'second SIGTERM'],
  ],
  [
    'a SIGTERM right after a Ctrl-C aborts at once',
    [
      ['SIGINT', 0],
      ['SIGTERM', 0],
    ],
    ['first SIGINT', 'second SIGTERM'],
  ],
  [
    'a Ctrl-C right after a SIGTERM aborts at once',
    [
      ['SIGTERM', 0],
      ['SIGINT', 0],
    ],
    ['first SIGTERM', 'second SIGINT'],
  ],
]

for (const [what, signals, expected] of cases) {
  test(`signals: ${what}`, async (t) => {
    const { heard, arrive } = listening(t)
    for (const [name, afterMs] of signals) await arrive(name, afterMs)
    assert.deepEqual(heard, expected)
  })
}

test('signals: nothing is listened to after the end', async (t) => {
  const { heard, arrive, stop, count } = listening(t)
  assert.equal(count(), 2)
  stop()
  assert.equal(count(), 0)
  await arrive('SIGTERM')
  assert.deepEqual(heard, [])
})

test('signals: who has stopped listening is not killed by the echo of the first, and by nothing else spared', async (t) => {
  for (const [name, other, windowMs] of [
    ['SIGINT', 'SIGTERM', 100],
    ['SIGTERM', 'SIGINT', 5],
  ] as const) {
    const { heard, arrive, stop, ours } = listening(t)
    await arrive(name)
    stop()
    stop()
    assert.deepEqual([ours(name).length, ours(other).length], [1, 0])
    await arrive(name, windowMs)
    assert.deepEqual(heard, [`first ${name}`])
    assert.equal(ours(name).length, 1)
    await arrive(name, 1)
    assert.equal(ours(name).length, 0)
    assert.deepEqual(heard, [`first ${name}`])
  }
})

test('signals: who has stopped listening hears nothing more, also when the timer is late', async (t) => {
  let nowMs = 0
  const ours = listenersFromNow()
  const heard: string[] = []
  const acts = { first: () => heard.push('first'), second: () => heard.push('second') }
  const late: (() => void)[] = []
  const stop = onSignals(acts, {
    now: () => nowMs,
    after: (_ms, run) => {
      late.push(run)
      return () => undefined
    },
  })
  t.after(() => {
    for (const run of late) run()
  })
  for (const listener of ours('SIGINT')) listener('SIGINT')
  stop()
  nowMs = 500
  for (const listener of ours('SIGINT')) listener('SIGINT')
  assert.deepEqual([heard, late.length], [['first'], 1])
})

test('signals: who stops after the time of an echo listens no more', async (t) => {
  const { arrive, stop, count } = listening(t)
  await arrive('SIGINT')
  await arrive('SIGINT', 101)
  stop()
  assert.equal(count(), 0)
})

test('signals: true of an app that had nothing to finish leaves the echo out, and the next one is not its any more', async () => {
  const ours = listenersFromNow()
  const { app, clock, queue, open } = await stage({ app: { signals: true } })
  app.work(queue, () => undefined)
  const byHand = await open({ signals: true })
  await Promise.all([app.start(), byHand.start()])
  await clock.advance(100)
  await byHand.close()
  assert.equal(ours('SIGINT').length, 1, 'one that was closed by hand has heard nothing')
  for (const listener of ours('SIGINT')) listener('SIGINT')
  const closed = app.close()
  await clock.advance(0)
  await closed
  assert.deepEqual([ours('SIGINT').length, ours('SIGTERM').length], [1, 0])
  await clock.advance(101)
  assert.equal(ours('SIGINT').length, 0)
})

test('signals: waiting for an echo keeps no process alive', async () => {
  const ours = listenersFromNow()
  const timers = (): number =>
    process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  const app = await createMillrace({
    transport: memory(),
    queues: [defineQueue({ name: 'q', owner: 'o', payload: orderSchema })],
    logger: silentLogger,
    signals: true,
  })
  await app.start()
  for (const listener of ours('SIGINT')) listener('SIGINT')
  await app.close()
  assert.ok(timers() <= before, `${timers()} timers, ${before} before`)
})

test('signals: true of an app that is still starting ends its start as one that was wanted', async () => {
  const ours = listenersFromNow()
  const other = defineQueue({ name: 'other', owner: 'o', payload: orderSchema })
  const { app, clock, queue } = await stage({ app: { signals: true }, beside: [other] })
  let runs = 0
  for (const one of [queue, other]) {
    app.work(one, () => void runs++)
    await app.send(one, { orderId: 'a' })
  }
  const starting = app.start()
  for (const listener of ours('SIGTERM')) listener('SIGTERM')
  await starting
  await clock.advance(1_000)
  await app.close()
  assert.equal(runs, 0)
})

test('signals: true of an app that only sends finishes what it sends, and a start that comes too late was wanted so, once', async () => {
  const ours = listenersFromNow()
  const { app, clock, queue, open } = await stage({ app: { signals: true } })
  const sending = app.send(queue, { orderId: 'a' })
  for (const listener of ours('SIGTERM')) listener('SIGTERM')
  await clock.advance(0)
  const { id } = await sending
  const late = app.send(queue, { orderId: 'b' })
  await assert.rejects(late, { code: 'MILLRACE_CLOSED' })
  await app.start()
  await clock.advance(1_000)
  await app.close()
  assert.equal(ours('SIGTERM').length + ours('SIGINT').length, 0)
  const other = await open({ signals: false })
  assert.equal((await other.admin.messages.get(queue, id))?.state, 'ready')
  await app.start()
  const byHand = await open({ signals: true })
  await byHand.close()
  await assert.rejects(byHand.start(), { code: 'MILLRACE_CLOSED' })
})

test('signals: true drains at the first signal, aborts at the second and stops listening', async () => {
  const ours = listenersFromNow()
  const { app, clock, queue, lines, open } = await stage({ app: { signals: true } })
  let aborted = false
  app.work(queue, (_message, ctx) => {
    ctx.signal.addEventListener('abort', () => {
      aborted = true
    })
    return new Promise(() => undefined)
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  assert.equal(ours('SIGTERM').length, 1)
  await app.start()
  assert.equal(ours('SIGTERM').length, 1)
  await clock.advance(100)
  const arrive = (name: Name): void => {
    for (const listener of ours(name)) listener(name)
  }
  arrive('SIGINT')
  arrive('SIGINT')
  await clock.advance(5_000)
  assert.equal(aborted, false)
  arrive('SIGTERM')
  await clock.advance(1_000)
  assert.equal(aborted, true)
  await app.close()
  assert.deepEqual(
    lines.filter(({ message }) => /^SIG/.test(message)).map(({ message }) => message),
    ['SIGINT: draining', 'SIGTERM: aborting what still runs'],
  )
  assert.equal(ours('SIGTERM').length + ours('SIGINT').length, 0)
  const other = await open({ signals: false })
  const message = await other.admin.messages.get(queue, id)
  assert.deepEqual([message?.state, message?.attempt], ['ready', 1])
})
