import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { virtualClock } from 'millrace/testing'
import { seededRandom } from '../../src/testing/seeded-random.ts'
import { byDepth } from '../depth.ts'
import { orderedFleet } from './ordered-fleet.ts'

const MINUTE_MS = 60_000

const scenario = fc.record({
  seed: fc.nat(),
  keys: fc.integer({ min: 2, max: 6 }),
  perKey: fc.integer({ min: 2, max: 8 }),
  perSecond: fc.constantFrom(undefined, 2, 20),
  perKeySecond: fc.constantFrom(undefined, 1, 5),
  slots: fc.constantFrom(undefined, 1, 3),
  acts: fc.array(
    fc.record({
      what: fc.constantFrom('sick', 'sick', 'throttles', 'throttles', 'well', 'replace'),
      host: fc.nat({ max: 1 }),
      forMs: fc.constantFrom(100, 1_000, 5_000, 20_000),
    }),
    { minLength: 3, maxLength: 12 },
  ),
})

type Scenario = typeof scenario extends fc.Arbitrary<infer S> ? S : never

test('However breakers open, gates close, rates run out and apps go, each key is handled in its order, none is blamed for waiting, and a well downstream does not wait for a sick one.', async (t) => {
  const numRuns = byDepth({ quick: 15, full: 60, long: 2_000 })
  const seed = Number(process.env.MILLRACE_SEED ?? Date.now() % 2 ** 31)
  t.diagnostic(`seed ${seed}`)
  let waits = 0
  const property = fc.asyncProperty(scenario, async (one) => {
    waits += await play(one)
  })
  await fc.assert(property, { numRuns, seed })
  t.diagnostic(`${waits} times something waited`)
  assert.ok(waits > 0, 'nothing ever waited')
})

/** Answers how often something waited. */
async function play({ seed, keys, perKey, acts, ...rates }: Scenario): Promise<number> {
  const clock = virtualClock()
  const random = seededRandom(String(seed))
  const fleet = await orderedFleet({ clock, random, keys, perKey, limits: limitsOf(rates) })
  for (const { what, host, forMs } of acts) {
    if (what === 'replace') await fleet.replace()
    else fleet.set(host, what)
    await clock.advance(forMs)
  }
  const until = async (what: string, isSo: () => boolean): Promise<void> => {
    for (let minute = 0; minute < 60 && !isSo(); minute++) await clock.advance(MINUTE_MS)
    assert.ok(isSo(), `an hour is over, and not ${what}`)
  }
  fleet.set(0, 'sick')
  fleet.set(1, 'well')
  await until('all of the well one are done', () => fleet.isDone(1))
  fleet.set(0, 'well')
  await until('all are done', () => fleet.isDone())
  await fleet.verdict()
  await fleet.close()
  return fleet.waits
}

function limitsOf({
  perSecond,
  perKeySecond,
  slots,
}: Pick<Scenario, 'perSecond' | 'perKeySecond' | 'slots'>) {
  const perKey = perKeySecond && {
    perKey: { key: ({ key }: { readonly key: string }) => key, perSecond: perKeySecond, burst: 1 },
  }
  const all = perSecond && { perSecond, burst: 1 }
  return {
    ...((perKey || all) && { rateLimit: { ...all, ...perKey } }),
    ...(slots && { concurrencyLimit: { max: slots } }),
  }
}
