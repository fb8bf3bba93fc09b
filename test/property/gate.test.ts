import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type GateState, gateRate, gateThrottled, gateWaitMs } from 'millrace/flow'

const settings = { startPerSecond: 1, stepMs: 5_000 }
const START = Date.UTC(2026, 0, 1)

const throttles = fc.array(
  fc.record({
    afterMs: fc.integer({ min: 0, max: 120_000 }),
    forMs: fc.integer({ min: 0, max: 60_000 }),
  }),
  { minLength: 1, maxLength: 20 },
)

function after(history: readonly { readonly afterMs: number; readonly forMs: number }[]) {
  let at = START
  let gate: GateState | undefined
  for (const { afterMs, forMs } of history) {
    at += afterMs
    gate = gateThrottled(gate, forMs, at, settings)
  }
  assert.ok(gate !== undefined)
  return { gate, at }
}

test('Nothing goes while it is closed; then one a second, never less later, and in the end all.', () => {
  fc.assert(
    fc.property(throttles, (history) => {
      const { gate, at } = after(history)
      assert.deepEqual(JSON.parse(JSON.stringify(gate)), gate)
      assert.ok(gate.until >= at && gate.until <= at + 60_000 * history.length)
      if (gate.until > at) assert.equal(gateRate(gate, gate.until - 1, settings), 0)
      assert.equal(gateRate(gate, gate.until, settings), 1)
      let last = 0
      for (let ms = 0; ms <= 3_600_000; ms += 500) {
        const rate = gateRate(gate, gate.until + ms, settings)
        assert.ok(rate >= last, `${rate} after ${last}`)
        last = rate
      }
      assert.equal(last, Number.POSITIVE_INFINITY)
    }),
    { numRuns: 30 },
  )
})

test('A later answer never opens it earlier, and a day is the longest.', () => {
  fc.assert(
    fc.property(throttles, fc.integer({ min: 0, max: 10 ** 9 }), (history, forMs) => {
      const { gate, at } = after(history)
      const next = gateThrottled(gate, forMs, at, settings)
      if (at < gate.until) assert.ok(next.until >= gate.until)
      assert.ok(next.until <= Math.max(gate.until, at + 86_400_000))
    }),
  )
})

test('Who waits comes back about when the ramp has room.', () => {
  for (const waiting of [1, 10, 100, 1_000, 100_000]) {
    const gate = { until: START, perSecond: 0 }
    let gone = 0
    let ms = 0
    for (; gone < waiting && ms < 3_600_000; ms += 10) {
      const rate = gateRate(gate, START + ms, settings)
      gone += Number.isFinite(rate) ? rate / 100 : waiting
    }
    const expected = gateWaitMs(waiting, settings)
    assert.ok(Math.abs(expected - ms) <= 0.05 * ms + 100, `${waiting}: ${expected} and ${ms}`)
  }
})

/** A server that takes `limit` a second, and says "come back in five seconds" to all others. */
function share(limit: number, forMs: number): { readonly taken: number; readonly refused: number } {
  let gate: GateState | undefined
  let [taken, refused, tokens, owed] = [0, 0, limit, 0]
  for (let at = START; at < START + 1_800_000; at += 100) {
    tokens = Math.min(limit, tokens + limit / 10)
    const rate = gate === undefined ? Number.POSITIVE_INFINITY : gateRate(gate, at, settings)
    // Plenty waits, and a hundred handlers run.
    owed = Math.min(1, owed) + Math.min(100, rate / 10)
    for (; owed >= 1; owed--) {
      if (tokens >= 1) {
        tokens--
        taken++
        continue
      }
      refused++
      gate = gateThrottled(gate, forMs, at, settings)
      owed = 0
    }
  }
  return { taken: taken / 1_800, refused: refused / (taken + refused) }
}

test('A server with a limit of its own is used for a third at least, and seldom asked in vain.', () => {
  for (const limit of [5, 20, 100, 400]) {
    for (const forMs of [1_000, 5_000, 20_000]) {
      const { taken, refused } = share(limit, forMs)
      assert.ok(taken >= limit / 3, `${taken.toFixed(1)} of ${limit} a second, told ${forMs} ms`)
      assert.ok(refused <= 0.02, `${(refused * 100).toFixed(2)} % refused at ${limit}`)
    }
  }
})
