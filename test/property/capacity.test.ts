import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { depthLimit, recommend, retryAfterMs, type ScaleFacts, type ScaleGoal } from 'millrace/flow'

const limits = fc.record({
  maxDepth: fc.integer({ min: 1, max: 10_000_000 }),
  watermark: fc.double({ min: 0.01, max: 1, noNaN: true }),
  levels: fc.integer({ min: 1, max: 10 }),
})

test('A higher priority never has less room, the highest has all of it, and the lowest its share, one message at least.', () => {
  fc.assert(
    fc.property(limits, (given) => {
      const { maxDepth, watermark, levels } = given
      const rooms = Array.from({ length: levels }, (_, priority) => depthLimit(priority, given))
      assert.deepEqual(
        rooms,
        rooms.toSorted((a, b) => a - b),
      )
      assert.equal(rooms.at(-1), maxDepth)
      const [lowest = 0] = rooms
      assert.ok(lowest >= 1 && Number.isInteger(lowest))
      const share = levels === 1 ? 1 : watermark
      assert.ok(lowest <= Math.max(1, maxDepth * share) && lowest > maxDepth * share - 1)
    }),
  )
})

test('Whoever is refused comes back when a hundredth of the queue has left, between a second and the longest.', () => {
  const given = fc.record({
    maxDepth: fc.integer({ min: 1, max: 10_000_000 }),
    perSecond: fc.double({ min: 0, max: 1e6, noNaN: true }),
    maxMs: fc.integer({ min: 1_000, max: 86_400_000 }),
  })
  fc.assert(
    fc.property(given, (one) => {
      const { maxDepth, perSecond, maxMs } = one
      const ms = retryAfterMs(one)
      assert.ok(Number.isInteger(ms) && ms >= 1_000 && ms <= maxMs)
      const left = (perSecond * ms) / 1_000
      const wanted = Math.max(1, maxDepth / 100)
      // Half a message for the rounding of the time to whole ms, at a million in a second.
      if (ms < maxMs) assert.ok(left >= wanted - perSecond / 1_000)
      if (ms > 1_000 && ms < maxMs) assert.ok(left <= wanted + perSecond / 1_000)
      assert.ok(retryAfterMs({ ...one, perSecond: perSecond * 2 }) <= ms)
    }),
  )
  assert.equal(retryAfterMs({ maxDepth: 100, perSecond: 0, maxMs: 60_000 }), 60_000)
})

const goals = fc
  .record({
    concurrency: fc.integer({ min: 1, max: 100 }),
    clearWithinMs: fc.integer({ min: 1_000, max: 600_000 }),
    utilisation: fc.double({ min: 0.1, max: 1, noNaN: true }),
  })
  .map((goal): ScaleGoal => ({ ...goal, min: 0, max: Number.MAX_SAFE_INTEGER }))
const situations = fc
  .record({
    depth: fc.integer({ min: 0, max: 100_000 }),
    arrivalsPerSecond: fc.double({ min: 0, max: 1_000, noNaN: true }),
    handlerMs: fc.double({ min: 1, max: 10_000, noNaN: true }),
  })
  .map((facts) => ({ ...facts, inFlight: 0, paused: false }) satisfies ScaleFacts)
type Situation = typeof situations extends fc.Arbitrary<infer One> ? One : never

test('As many workers as are recommended work off what waits in time, while more arrives; one fewer does not, when slots may be busy all the time.', () => {
  const runs = fc.property(situations, goals, (facts, goal) => {
    const { workers = 0 } = recommend(facts, goal)
    const left = leftAfter(workers, facts, goal)
    assert.ok(left <= facts.depth * 1e-9 + 1e-6, `${left} left with ${workers} workers`)
    const tight = { ...goal, utilisation: 1 }
    const { workers: fewest = 0 } = recommend(facts, tight)
    if (fewest < 2 || facts.depth === 0) return
    assert.ok(leftAfter(fewest - 1, facts, tight) > 0, `${fewest - 1} workers do it`)
  })
  fc.assert(runs)
})

/** What still waits when the time is over, as a fluid: all slots work all the time. */
function leftAfter(
  workers: number,
  { depth, arrivalsPerSecond, handlerMs }: Situation,
  { concurrency, clearWithinMs }: ScaleGoal,
): number {
  const arrived = (arrivalsPerSecond * clearWithinMs) / 1_000
  return Math.max(0, depth + arrived - (workers * concurrency * clearWithinMs) / handlerMs)
}
