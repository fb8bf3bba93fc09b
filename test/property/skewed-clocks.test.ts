import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type BreakerState,
  breakerVerdict,
  CLOSED,
  type CountWindow,
  counted,
  countsOf,
  gateThrottled,
} from 'millrace/flow'
import { mergedWindows } from '../../src/flow/count-window.ts'
import { endsSeen } from '../../src/flow/ends-seen.ts'

const gate = { startPerSecond: 1, stepMs: 5_000 }
const settings = {
  ...{ failureShare: 0.5, minimum: 10, windowMs: 30_000, openMs: 10_000, openMaxMs: 300_000 },
  gate,
}
const START = Date.UTC(2026, 0, 1)
const DAY_MS = 86_400_000

const skewMs = fc.integer({ min: -2 * DAY_MS, max: 2 * DAY_MS })
const looksMs = fc.array(fc.integer({ min: 0, max: 60_000 }), { minLength: 1, maxLength: 40 })

/** Opened so often by a machine whose clock is off by so much. */
function openedBy(skew: number, opens: number): BreakerState {
  const forMs = Math.min(settings.openMaxMs, settings.openMs * 2 ** (opens - 1))
  return { ...CLOSED, phase: 'open', opens, until: START + skew + forMs, failed: 9, runs: 10 }
}

test('However wrong the clock is that opened it, it is open no longer than its time, however often it is looked at.', () => {
  fc.assert(
    fc.property(skewMs, fc.integer({ min: 1, max: 12 }), looksMs, (skew, opens, looks) => {
      const state = openedBy(skew, opens)
      const forMs = state.until - START - skew
      const asSeen = endsSeen(settings)
      let now = START
      for (const afterMs of looks) {
        const believed = asSeen(new Map([['api', state]]), now).get('api') ?? assert.fail()
        assert.equal(believed.until, Math.min(state.until, START + forMs))
        const isOver = now >= START + forMs || now >= state.until
        assert.equal(breakerVerdict(believed, now).as, isOver ? 'probe' : 'wait')
        now += afterMs
      }
    }),
  )
})

test('A pause that a machine with a wrong clock was asked for is no longer than it was told, and no shorter by a right one.', () => {
  fc.assert(
    fc.property(skewMs, fc.integer({ min: 1, max: DAY_MS }), looksMs, (skew, forMs, looks) => {
      const paused = gateThrottled(undefined, forMs, START + skew, gate)
      const asSeen = endsSeen(settings)
      let now = START
      for (const afterMs of looks) {
        const fleet = asSeen(new Map([['api', { ...CLOSED, gate: paused }]]), now)
        const { until = 0 } = fleet.get('api')?.gate ?? {}
        assert.equal(until, Math.min(paused.until, START + forMs))
        now += afterMs
      }
    }),
  )
})

test('A clock that is set back makes no pause longer than its time from then on.', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 * DAY_MS }), looksMs, (backMs, looks) => {
      const state = openedBy(0, 3)
      const fleet = new Map([['api', state]])
      const asSeen = endsSeen(settings)
      let now = START
      for (const afterMs of looks) {
        asSeen(fleet, now)
        now += afterMs
      }
      now -= backMs
      const setTo = now
      for (const afterMs of looks) {
        const { until = 0 } = asSeen(fleet, now).get('api') ?? {}
        assert.ok(until <= setTo + 40_000, `${until - setTo} ms after the clock was set`)
        now += afterMs
      }
    }),
  )
})

const runs = fc.array(
  fc.record({
    afterMs: fc.integer({ min: 0, max: 10_000 }),
    outcome: fc.constantFrom('ok' as const, 'failed' as const),
  }),
  { minLength: 1, maxLength: 60 },
)

test('Once a clock is set back by two minutes or more, old failures count no more, then or when their time comes again.', () => {
  // A minute's tolerance, a window, and the time until the next run.
  const setBackMs = fc.integer({ min: 105_000, max: 2 * DAY_MS })
  fc.assert(
    fc.property(runs, runs, setBackMs, (before, after, backMs) => {
      let now = START
      let old: CountWindow = []
      for (const { afterMs, outcome } of before) {
        now += afterMs
        old = counted(old, { [outcome]: 1 }, now, settings.windowMs)
      }
      const newest = now
      now -= backMs
      assert.deepEqual(countsOf(old, now, settings.windowMs), {})
      const seen: { readonly at: number; readonly outcome: string }[] = []
      let [one, merged] = [old, old]
      for (const { afterMs, outcome } of after) {
        now += afterMs
        seen.push({ at: now, outcome })
        one = counted(one, { [outcome]: 1 }, now, settings.windowMs)
        const fresh = counted([], { [outcome]: 1 }, now, settings.windowMs)
        merged = mergedWindows(merged, fresh, now, settings.windowMs)
        const lately = seen.filter((run) => run.at > now - settings.windowMs)
        for (const window of [one, merged]) {
          const { failed = 0, ok = 0 } = countsOf(window, now, settings.windowMs)
          assert.ok(failed <= lately.filter((run) => run.outcome === 'failed').length)
          assert.ok(ok <= lately.filter((run) => run.outcome === 'ok').length)
        }
      }
      // As after `after`: what came in the meantime alone is there when the old moment comes again.
      if (newest - now > settings.windowMs) {
        for (const window of [one, merged]) {
          assert.deepEqual(countsOf(window, newest, settings.windowMs), {})
        }
      }
    }),
  )
})

test('Machines whose clocks differ by less than a minute count together.', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 59_000 }), (aheadMs) => {
      const theirs = counted([], { failed: 4 }, START + aheadMs, settings.windowMs)
      const ours = counted([], { failed: 3 }, START, settings.windowMs)
      const both = mergedWindows(theirs, ours, START, settings.windowMs)
      assert.equal(countsOf(both, START, settings.windowMs)['failed'], 7)
    }),
  )
})
