import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { memoryStore } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { seededRandom } from '../../src/testing/seeded-random.ts'
import { byDepth } from '../depth.ts'
import { connectStore } from '../stores/store-harness.ts'
import { limitedFleet, SLOT_ENDS_MS } from './limited-fleet.ts'

const MESSAGES = 30
const WORKERS = 4

const scenario = fc.record({
  seed: fc.nat(),
  max: fc.constantFrom(1, 2, 5, undefined),
  maxPerKey: fc.constantFrom(1, 2),
  acts: fc.array(
    fc.record({
      what: fc.constantFrom('kill', 'stop', 'stop', 'go', 'away', 'away', 'wait', 'wait'),
      who: fc.nat({ max: WORKERS - 1 }),
      forMs: fc.constantFrom(200, 1_000, 3_000, 9_000, 20_000),
    }),
    { minLength: 5, maxLength: 30 },
  ),
})

type Scenario = typeof scenario extends fc.Arbitrary<infer S> ? S : never

test('However workers are killed and stopped and the store goes away, no more run than may, no slot is leaked, and every message is handled.', async (t) => {
  const numRuns = byDepth({ quick: 10, full: 30, long: 2_000 })
  const seed = Number(process.env.MILLRACE_SEED ?? Date.now() % 2 ** 31)
  t.diagnostic(`seed ${seed}`)
  await fc.assert(fc.asyncProperty(scenario, play), { numRuns, seed })
})

async function play({ seed, acts, ...limits }: Scenario): Promise<void> {
  const clock = virtualClock()
  const random = seededRandom(String(seed))
  const store = await connectStore(memoryStore(), clock)
  const messages = Array.from({ length: MESSAGES }, (_, n) => ({
    n,
    key: `k${n % 3}`,
    takesMs: 50 + Math.floor(random() * 15_000),
  }))
  const fleet = limitedFleet({ clock, store, random, limits, messages, workers: WORKERS })
  const pass = async (ms: number): Promise<void> => {
    for (let gone = 0; gone < ms; gone += 200) {
      await clock.advance(200)
      fleet.check()
    }
  }
  for (const { what, who, forMs } of acts) {
    if (what === 'away') fleet.setAway(true)
    else if (what !== 'wait') fleet[what](who)
    await pass(forMs)
    fleet.setAway(false)
  }
  for (let worker = 0; worker < WORKERS; worker++) fleet.go(worker)
  for (let beat = 0; beat < 2_000 && fleet.handled.size < MESSAGES; beat++) await pass(400)
  assert.equal(fleet.handled.size, MESSAGES)
  await pass(SLOT_ENDS_MS + 1_000)
  assert.deepEqual(await store.slots.count('flow:slots:q', 5), { held: 0, keys: [] })
  await fleet.close()
  await store.close()
}
