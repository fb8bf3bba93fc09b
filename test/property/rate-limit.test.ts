import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type BucketLevel, bucketTaken, turnOf } from 'millrace/flow'

const rate = fc.record({
  capacity: fc.double({ min: 1, max: 100, noNaN: true }),
  refillPerSecond: fc.double({ min: 0.01, max: 1_000, noNaN: true }),
})

test('In no stretch of time do more go than the burst and what the rate gives.', () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 2_000 }), {
    minLength: 1,
    maxLength: 200,
    size: 'max',
  })
  fc.assert(
    fc.property(rate, gaps, (limit, waits) => {
      let bucket: BucketLevel | undefined
      let now = 0
      const gone: number[] = []
      for (const ms of waits) {
        now += ms
        const { after, answer } = bucketTaken(bucket, limit, 1, now)
        bucket = JSON.parse(JSON.stringify(after))
        if (answer.taken) gone.push(now)
        else {
          const later = now + (answer.retryAfterMs ?? Number.NaN)
          assert.ok(bucketTaken(after, limit, 1, later + 0.001).answer.taken, 'told the truth')
        }
      }
      for (const [i, from] of gone.entries()) {
        for (const [j, to] of gone.entries()) {
          if (j < i) continue
          const most = limit.capacity + ((to - from) * limit.refillPerSecond) / 1_000
          assert.ok(j - i + 1 <= most + 1e-6, `${j - i + 1} from ${from} to ${to}, ${most} may`)
        }
      }
    }),
  )
})

test('More than the bucket holds is never given, and is not waited for.', () => {
  const { answer } = bucketTaken(undefined, { capacity: 2, refillPerSecond: 1 }, 3, 0)
  assert.deepEqual(answer, { taken: false, retryAfterMs: undefined })
})

test('Who waits gets a turn of its own, behind the last one, and never too early.', () => {
  const waiting = fc.array(fc.integer({ min: 0, max: 500 }), { minLength: 2, maxLength: 200 })
  fc.assert(
    fc.property(waiting, fc.double({ min: 0.01, max: 1_000, noNaN: true }), (gaps, perSecond) => {
      let now = 0
      let last: number | undefined
      for (const ms of gaps) {
        now += ms
        const turn = turnOf(last, now, 10, perSecond)
        assert.ok(turn >= now + 10)
        if (last !== undefined) assert.ok(turn - last >= 1_000 / perSecond - 1e-6)
        last = turn
      }
    }),
  )
})
