import assert from 'node:assert/strict'
import { test } from 'node:test'
import { virtualClock } from 'millrace/testing'
import { pause } from '../../../src/model/clock.ts'

test('Time stands still until it is moved.', async () => {
  const clock = virtualClock({ startMs: 1_000 })
  let fired = false
  clock.after(0, () => {
    fired = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(fired, false)
  assert.equal(clock.now(), 1_000)
  await clock.advance(0)
  assert.equal(fired, true)
})

test('Timers fire in due order, equal ones in the order of setting.', async () => {
  const clock = virtualClock({ startMs: 0 })
  const fired: [string, number][] = []
  for (const [name, ms] of [
    ['late', 30],
    ['early', 10],
    ['early too', 10],
    ['far', 31],
  ] as const) {
    clock.after(ms, () => fired.push([name, clock.now()]))
  }
  await clock.advance(30)
  assert.deepEqual(fired, [
    ['early', 10],
    ['early too', 10],
    ['late', 30],
  ])
  assert.equal(clock.now(), 30)
  assert.equal(clock.nextDueAt(), 31)
})

test('A timer that another sets on the way is met at its own moment.', async () => {
  const clock = virtualClock({ startMs: 0 })
  const seen: number[] = []
  const loop = async (): Promise<void> => {
    for (let round = 0; round < 3; round++) {
      await pause(clock, 10)
      seen.push(clock.now())
    }
  }
  void loop()
  await clock.advance(100)
  assert.deepEqual(seen, [10, 20, 30])
})

test('A cancelled timer never fires.', async () => {
  const clock = virtualClock()
  let fired = 0
  const cancel = clock.after(5, () => {
    fired += 1
  })
  cancel()
  cancel()
  await clock.advance(10)
  assert.equal(fired, 0)
  assert.equal(clock.nextDueAt(), undefined)
})

test('Moves that overlap queue up behind each other.', async () => {
  const clock = virtualClock({ startMs: 0 })
  const seen: number[] = []
  clock.after(15, () => seen.push(clock.now()))
  await Promise.all([clock.advance(10), clock.advance(10)])
  assert.deepEqual(seen, [15])
  assert.equal(clock.now(), 20)
})

test('Time does not go backwards.', async () => {
  const clock = virtualClock()
  assert.throws(() => clock.advance(-1), RangeError)
  assert.throws(() => clock.advance(Number.NaN), RangeError)
})

test('A timer that throws fails the move that fired it, and the next move goes on.', async () => {
  const clock = virtualClock({ startMs: 0 })
  clock.after(1, () => {
    throw new Error('in a timer')
  })
  await assert.rejects(clock.advance(2), /in a timer/)
  await clock.advance(5)
  assert.ok(clock.now() >= 5)
})
