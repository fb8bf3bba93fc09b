import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Measure, measured, recommend, runsPerSecond, type ScaleFacts } from 'millrace/flow'

const goal = { concurrency: 10, clearWithinMs: 60_000, utilisation: 0.8, min: 0, max: 100 }
const facts: ScaleFacts = {
  depth: 1_200,
  inFlight: 20,
  paused: false,
  arrivalsPerSecond: 100,
  handlerMs: 200,
}

test('Little’s law: 100 a second of 200 ms are 20 at any time, and 1200 in a minute 4 more.', () => {
  const { workers, slots, why } = recommend(facts, goal)
  assert.equal(slots, 30)
  assert.equal(workers, 3)
  assert.deepEqual(why, [
    "100 messages/s arrive and a handler takes 200 ms: 20 run at any time (Little's law)",
    '1200 wait and are to be gone within 60 s: 4 more (1200 × 0.2 s / 60 s)',
    'busy for 80 % of the time at most: 30 slots, 10 in each worker',
  ])
})

test('What may not run side by side needs no workers.', () => {
  const { workers, slots, why } = recommend({ ...facts, slotsMax: 12 }, goal)
  assert.deepEqual([workers, slots], [2, 12])
  assert.equal(why.at(-1), 'no more than 12 may run side by side (concurrencyLimit)')
  assert.equal(recommend({ ...facts, slotsMax: 30 }, goal).why.length, 3)
})

test('Without a rate, what is in flight now stands for it.', () => {
  assert.equal(recommend({ ...facts, arrivalsPerSecond: undefined }, goal).workers, 3)
})

for (const [name, given, workers, why] of [
  ['paused', { paused: true }, 0, /paused/],
  ['nobody says how much waits', { depth: undefined }, undefined, /how much waits/],
  ['nothing is known', { arrivalsPerSecond: undefined, inFlight: undefined }, undefined, /neither/],
  ['nobody measured what runs', { handlerMs: undefined }, undefined, /is not known/],
  ['it cannot be known', { handlerMs: undefined, inFlight: undefined }, undefined, /is not known/],
  ['nobody works yet', { handlerMs: undefined, inFlight: 0 }, 1, /to begin and to measure/],
  ['nothing to do', { handlerMs: undefined, inFlight: 0, depth: 0 }, 0, /nothing waits/],
  ['idle', { depth: 0, inFlight: 0, arrivalsPerSecond: 0.001 }, 0, /Little/],
  ['quick handlers', { depth: 0, inFlight: 0, arrivalsPerSecond: 5, handlerMs: 1 }, 1, /Little/],
  ['the last message', { depth: 1, inFlight: 0, arrivalsPerSecond: 0 }, 1, /1 wait/],
] as const) {
  test(`Workers for a queue of which is known: ${name}.`, () => {
    const found = recommend({ ...facts, ...given }, goal)
    assert.equal(found.workers, workers)
    assert.match(found.why.join('\n'), why)
  })
}

test('Bounds hold, and say that they did.', () => {
  const many = recommend({ ...facts, depth: 1e9 }, goal)
  assert.equal(many.workers, 100)
  assert.match(many.why.at(-1) ?? '', /max is 100/)
  assert.equal(recommend({ ...facts, paused: true }, { ...goal, min: 2 }).workers, 2)
})

test('So many workers are enough, and one less is not.', () => {
  const number = (max: number) => fc.double({ min: 0.01, max, noNaN: true })
  fc.assert(
    fc.property(fc.nat(1e6), number(1e3), number(1e4), (depth, rate, handlerMs) => {
      const known = { ...facts, depth, arrivalsPerSecond: rate, handlerMs }
      const workers = recommend(known, { ...goal, max: 1e9 }).workers ?? Number.NaN
      const needed = ((rate + (depth * 1_000) / goal.clearWithinMs) * handlerMs) / 1_000
      assert.ok(workers * goal.concurrency * goal.utilisation >= needed * (1 - 1e-6))
      assert.ok((workers - 1) * goal.concurrency * goal.utilisation < needed || workers === 1)
    }),
  )
})

test('The measure of a constant rate is that rate, from the first minute on, told at once or in parts.', () => {
  const course = (everyMs: number, runs: number): Measure => {
    let measure: Measure | undefined
    for (let at = 0; at <= 600_000; at += everyMs) {
      measure = measured(measure, { runs, busyMs: runs * 40 }, at)
      if (at >= 60_000) {
        const rate = runsPerSecond(measure, at)
        assert.ok(Math.abs(rate - (runs * 1_000) / everyMs) < rate * 0.15, `${at}: ${rate}`)
      }
    }
    assert.ok(measure !== undefined)
    return measure
  }
  assert.equal(course(10_000, 500).handlerMs?.toFixed(3), '40.000')
  assert.equal(course(1_000, 50).handlerMs?.toFixed(3), '40.000')
})

test('An idle queue still knows how long its handlers took, and has no rate any more.', () => {
  const day = 86_400_000
  const first = measured(undefined, { runs: 100, busyMs: 5_000 }, 0)
  const later = measured(first, { runs: 0, busyMs: 0 }, day)
  assert.equal(later.handlerMs, 50)
  assert.ok(runsPerSecond(later, day) < 1e-6)
  // A clock of another machine that is behind.
  assert.equal(measured(later, { runs: 1, busyMs: 50 }, day - 1_000).at, day)
})
