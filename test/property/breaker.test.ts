import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type BreakerState,
  breakerCounted,
  breakerHeld,
  breakerProbed,
  breakerProbing,
  breakerVerdict,
  CLOSED,
  counted,
} from 'millrace/flow'
import {
  type BreakerFleet,
  fleetCounted,
  fleetFromJson,
  fleetToJson,
} from '../../src/flow/breaker-fleet.ts'

const settings = {
  failureShare: 0.5,
  minimum: 10,
  windowMs: 30_000,
  openMs: 10_000,
  openMaxMs: 300_000,
  gate: undefined,
}
const START = Date.UTC(2026, 0, 1)

function ran(state: BreakerState, outcome: 'ok' | 'failed', at: number): BreakerState {
  return breakerCounted(state, counted([], { [outcome]: 1 }, at, settings.windowMs), at, settings)
}

const step = fc.record({
  afterMs: fc.integer({ min: 0, max: 5_000 }),
  outcome: fc.constantFrom('ok' as const, 'failed' as const),
})
const steps = fc.array(step, { maxLength: 300, size: 'max' })

test('It opens only at half of at least ten runs of one window, and then at once.', () => {
  fc.assert(
    fc.property(steps, (history) => {
      let at = START
      let state = CLOSED
      const seen: { at: number; outcome: string }[] = []
      for (const { afterMs, outcome } of history) {
        at += afterMs
        seen.push({ at, outcome })
        state = ran(state, outcome, at)
        const lately = seen.filter((one) => one.at > at - settings.windowMs)
        const surely = seen.filter((one) => one.at > at - settings.windowMs * 0.9)
        const failed = (runs: typeof seen): number =>
          runs.filter((one) => one.outcome === 'failed').length
        if (state.phase === 'open') {
          assert.ok(lately.length >= settings.minimum)
          assert.ok(state.failed >= state.runs * settings.failureShare)
          assert.equal(state.until, at + settings.openMs)
          return
        }
        // The window moves in tenths: what surely is within it decides.
        const isBad = surely.length >= 10 && failed(surely) >= lately.length * 0.5
        assert.ok(!isBad, `${failed(surely)} of ${lately.length} failed, and it is closed`)
      }
    }),
  )
})

test('Open, it lets nothing through before its time, then one probe, and each failure doubles the time up to the bound.', () => {
  let state = CLOSED
  for (let i = 0; i < 10; i++) state = ran(state, 'failed', START)
  const waits: number[] = []
  for (let fence = 1n; fence <= 8n; fence++) {
    assert.deepEqual(breakerVerdict(state, state.until - 1), { as: 'wait', until: state.until })
    assert.deepEqual(breakerVerdict(state, state.until), { as: 'probe' })
    const now = state.until
    const probing = breakerProbing(state, fence, now) ?? assert.fail()
    assert.equal(breakerProbing(probing, fence, now), undefined, 'one lease, one probe')
    state = breakerProbed(probing, fence, 'failed', now, settings)
    waits.push(state.until - now)
  }
  assert.deepEqual(waits, [20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000, 300_000])
  const probing = breakerProbing(state, 9n, state.until) ?? assert.fail()
  const closed = breakerProbed(probing, 9n, 'ok', state.until, settings)
  assert.deepEqual(breakerVerdict(closed, state.until), { as: 'run' })
  assert.equal(closed.opens, 0)
})

type Act =
  | { readonly as: 'acquire' }
  | { readonly as: 'end'; readonly which: number; readonly outcome: 'ok' | 'failed' | 'undecided' }

const act: fc.Arbitrary<Act> = fc.oneof(
  fc.constant<Act>({ as: 'acquire' }),
  fc.record({
    as: fc.constant('end' as const),
    which: fc.nat(20),
    outcome: fc.constantFrom('ok' as const, 'failed' as const, 'undecided' as const),
  }),
)

test('A probe that lost its lease decides nothing, in whatever order probes begin and end.', () => {
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60, size: 'max' }), (acts) => {
      let state = CLOSED
      for (let i = 0; i < 10; i++) state = ran(state, 'failed', START)
      const now = state.until + 1_000_000
      let fence = 0n
      for (const one of acts) {
        const before = state
        if (one.as === 'acquire') {
          fence++
          state = breakerProbing(state, fence, now) ?? state
          if (before.phase !== 'closed')
            assert.equal(state.phase, before.until <= now ? 'half-open' : 'open')
        } else {
          state = breakerProbed(state, BigInt(one.which), one.outcome, now, settings)
          const isOurs = before.phase === 'half-open' && before.fence === String(one.which)
          if (!isOurs || one.outcome === 'undecided') assert.equal(state, before)
          else assert.equal(state.phase, one.outcome === 'ok' ? 'closed' : 'open')
        }
      }
    }),
  )
})

test('By hand it stays as it is held, and begins anew when it is let go.', () => {
  fc.assert(
    fc.property(steps, (history) => {
      let open = breakerHeld(CLOSED, 'open')
      let closed = breakerHeld(CLOSED, 'closed')
      let at = START
      for (const { afterMs, outcome } of history) {
        at += afterMs
        open = ran(open, outcome, at)
        closed = ran(closed, outcome, at)
        assert.equal(breakerVerdict(open, at).as, 'wait')
        assert.equal(breakerVerdict(closed, at).as, 'run')
      }
      assert.deepEqual(breakerVerdict(breakerHeld(open, 'none'), at), { as: 'run' })
    }),
  )
})

test('Ten processes that each see one failure open it as one that sees ten.', () => {
  const one = counted([], { failed: 1 }, START, settings.windowMs)
  let fleet: BreakerFleet = new Map()
  for (let i = 0; i < 10; i++) fleet = fleetCounted(fleet, new Map([['api', one]]), START, settings)
  assert.equal(fleet.get('api')?.phase, 'open')
})

test('A fleet survives JSON, forgets who is well, and stays small however many downstreams fail.', () => {
  const names = fc.oneof(fc.string({ minLength: 1, maxLength: 20 }), fc.constant('__proto__'))
  fc.assert(
    fc.property(
      fc.array(fc.tuple(names, fc.array(step, { maxLength: 30 })), { maxLength: 8 }),
      (all) => {
        let fleet: BreakerFleet = new Map()
        for (const [name, history] of all) {
          for (const { outcome } of history) {
            const window = counted([], { [outcome]: 1 }, START, settings.windowMs)
            fleet = fleetCounted(fleet, new Map([[name, window]]), START, settings)
          }
        }
        const read = fleetFromJson(JSON.parse(JSON.stringify(fleetToJson(fleet)))) ?? assert.fail()
        assert.deepEqual([...read.keys()], [...fleet.keys()])
        for (const [name, state] of fleet) {
          for (const now of [START, state.until, state.until + 1]) {
            assert.deepEqual(
              breakerVerdict(read.get(name) ?? CLOSED, now),
              breakerVerdict(state, now),
            )
          }
        }
      },
    ),
    { numRuns: 50 },
  )
  const window = counted([], { failed: 20 }, START, settings.windowMs)
  const slight = counted([], { failed: 1 }, START, settings.windowMs)
  const many = Array.from(
    { length: 2_000 },
    (_, i) => [`host-${i}`, i === 1_000 ? window : slight] as const,
  )
  const fleet = fleetCounted(new Map(), new Map(many), START, settings)
  assert.equal(fleet.size, 400)
  assert.equal(fleet.get('host-1000')?.phase, 'open')
  assert.equal(fleetCounted(fleet, new Map(), START + 40_000, settings).size, 1)
})

test('What another program wrote is no fleet.', () => {
  for (const text of ['{}', '"x"', 'null', '3'])
    assert.equal(fleetFromJson(JSON.parse(text)), undefined)
  for (const text of [
    '[1]',
    '[["a",{}]]',
    '[["a",{"phase":"open","held":"none","fence":"x","window":[]}]]',
  ]) {
    assert.equal(fleetFromJson(JSON.parse(text))?.size, 0)
  }
})
