import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { freshHistory } from '../../src/model/history.ts'
import { afterFailure, backoffMs, retryHorizonMs, throttleDelayMs } from '../../src/model/retry.ts'

const limits = fc.record({
  attempts: fc.integer({ min: 1, max: 1_000 }),
  baseMs: fc.oneof(fc.constantFrom(1, 1_000, 2 ** 40), fc.integer({ min: 1, max: 2 ** 41 })),
  maxMs: fc.integer({ min: 1, max: 30 * 86_400_000 }),
})
const k = fc.oneof(
  fc.constantFrom(1, 2, 31, 32, 53, 54, 63, 64, 1_023, 1_024, 1e9, Number.MAX_SAFE_INTEGER),
  fc.integer({ min: 1, max: 200 }),
)
const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
/** What users, servers and bugs name as a delay. */
const told = fc.oneof(
  fc.double(),
  fc.constantFrom(undefined, 0, -0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e300, 86_400_001),
)
const isDelay = (ms: number, max: number): boolean => Number.isInteger(ms) && ms >= 0 && ms <= max

test('every backoff is an integer from 0 to maxMs, however many attempts failed', () => {
  fc.assert(
    fc.property(k, limits, unit, (n, retry, r) => {
      assert.ok(
        isDelay(
          backoffMs(n, retry, () => r),
          retry.maxMs,
        ),
      )
    }),
  )
})

test('the ceiling is what exact arithmetic says, and so never falls', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), limits, unit, (n, retry, r) => {
      const exact = BigInt(retry.baseMs) * 2n ** BigInt(n - 1)
      const ceiling = exact < BigInt(retry.maxMs) ? Number(exact) : retry.maxMs
      assert.equal(
        backoffMs(n, retry, () => r),
        Math.floor(r * ceiling),
      )
    }),
  )
})

test('a throttled message never comes back early, and never later than 24 h and 10 %', () => {
  fc.assert(
    fc.property(told, limits, unit, (ms, retry, r) => {
      const delayMs = throttleDelayMs(ms, retry, () => r)
      assert.ok(isDelay(delayMs, Math.max(retry.maxMs, 86_400_000 * 1.1)))
      if (ms !== undefined && Number.isFinite(ms) && ms > 0)
        assert.ok(delayMs >= Math.min(ms, 86_400_000))
    }),
  )
})

test('whatever is thrown again and again, a message ends within its attempts and its horizon', () => {
  const failure = fc.record({
    errorClass: fc.constantFrom('transient' as const, 'throttled' as const),
    delayMs: told,
  })
  const run = fc.record({
    failures: fc.array(failure, { minLength: 1, maxLength: 50 }),
    retry: limits,
    r: unit,
  })
  fc.assert(
    fc.property(run, ({ failures, retry, r }) => {
      let [now, counted, steps] = [0, 0, 0]
      let throttledSince: number | undefined
      for (;;) {
        const { errorClass, delayMs } = failures[
          steps % failures.length
        ] as (typeof failures)[number]
        const classification = {
          errorClass,
          code: 'X',
          why: 'x',
          ...(delayMs === undefined ? {} : { delayMs }),
        }
        const history = { ...freshHistory, counted, throttledSince }
        const decision = afterFailure({ classification, history, retry, now, random: () => r })
        if (decision.as === 'dead') break
        if (decision.counted) counted++
        else throttledSince ??= now
        now += decision.delayMs
        // A backoff of 0 ms is possible (full jitter), so runs are bounded here for the test's sake.
        if (++steps > 3_000) break
      }
      assert.ok(counted < retry.attempts)
      assert.ok(now <= retryHorizonMs(retry), `${now} > ${retryHorizonMs(retry)}`)
    }),
    { numRuns: 200 },
  )
})

test('a thousand messages that failed together come back spread over the backoff', () => {
  const retry = { attempts: 8, baseMs: 10_000, maxMs: 3_600_000 }
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const random = generator(seed)
      const again = generator(seed)
      const buckets = new Map<number, number>()
      for (let i = 0; i < 1_000; i++) {
        const delayMs = backoffMs(1, retry, random)
        assert.equal(delayMs, backoffMs(1, retry, again))
        const bucket = Math.floor(delayMs / 100)
        buckets.set(bucket, (buckets.get(bucket) ?? 0) + 1)
      }
      assert.ok(Math.max(...buckets.values()) <= 50)
    }),
    { numRuns: 50 },
  )
})

/** mulberry32: small, and good enough to spread. */
function generator(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
