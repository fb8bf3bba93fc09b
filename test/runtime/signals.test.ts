import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { onSignals } from 'millrace'
import { virtualClock } from '../../src/testing/virtual-clock.ts'

type Name = 'SIGINT' | 'SIGTERM'

/** Listens on a virtual clock; `arrive` reaches only the listener under test, not the test runner's. */
function listening(t: TestContext) {
  const clock = virtualClock()
  const before = new Set<unknown>([...process.listeners('SIGINT'), ...process.listeners('SIGTERM')])
  const heard: string[] = []
  const stop = onSignals(
    {
      first: (name) => heard.push(`first ${name}`),
      second: (name) => heard.push(`second ${name}`),
    },
    clock,
  )
  t.after(stop)
  const ours = (name: Name) => process.listeners(name).filter((one) => !before.has(one))
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
    "a supervisor's second SIGTERM aborts at once",
    [
      ['SIGTERM', 0],
      ['SIGTERM', 0],
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
