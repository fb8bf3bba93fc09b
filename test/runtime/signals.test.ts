import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { onSignals } from 'millrace'
import { virtualClock } from '../../src/testing/virtual-clock.ts'
import { stage } from './stage.ts'

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
  assert.equal(ours('SIGTERM').length, 0)
  await app.start()
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
