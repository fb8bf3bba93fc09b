import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type KillSwitchState,
  killSwitchAfter,
  killSwitchAt,
  killSwitchSlots,
  RUNNING,
} from 'millrace/flow'

const settings = { failures: 20, share: 0.5, windowMs: 60_000, resumeAfterMs: 60_000 }
const START = Date.UTC(2026, 0, 1)

interface Run {
  readonly afterMs: number
  readonly kind: string | undefined
}

const runs = (kinds: readonly (string | undefined)[], afterMs: number) =>
  fc.array(
    fc.record({ afterMs: fc.integer({ min: 0, max: afterMs }), kind: fc.constantFrom(...kinds) }),
    { minLength: 1, maxLength: 400, size: 'max' },
  )

/** Each state that it went through, with the time of each run. */
function course(history: readonly Run[]): readonly { at: number; state: KillSwitchState }[] {
  let at = START
  let state = RUNNING
  return history.map(({ afterMs, kind }) => {
    at += afterMs
    const event = kind === undefined ? ({ as: 'ok' } as const) : ({ as: 'failed', kind } as const)
    state = killSwitchAfter(killSwitchAt(state, at), event, at, settings)
    return { at, state }
  })
}

test('It stops only when so many runs of one window failed alike, and they are so large a share of all.', () => {
  fc.assert(
    fc.property(runs([undefined, 'a', 'a', 'b'], 3_000), (history) => {
      const steps = course(history)
      for (const [i, { at, state }] of steps.entries()) {
        if (state.phase !== 'stopped' || steps[i - 1]?.state.phase !== 'running') continue
        const lately = steps
          .map((step, n) => ({ ...step, kind: history[n]?.kind }))
          .slice(0, i + 1)
          .filter((step) => at - step.at <= settings.windowMs)
        const alike = lately.filter(({ kind }) => kind === state.stop?.kind).length
        assert.ok(alike >= settings.failures, `${alike} alike`)
        assert.ok((state.stop?.failures ?? 0) >= settings.share * (state.stop?.runs ?? 0))
        assert.equal(state.stop?.until, at + settings.resumeAfterMs * 2 ** (state.stops - 1))
      }
    }),
  )
})

test('A handler that only fails stops it at the twentieth run, whatever came before.', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 5_000 }), (before) => {
      const fine = Array.from({ length: before }, () => ({ afterMs: 100, kind: undefined }))
      const failing = Array.from({ length: 20 }, () => ({ afterMs: 100, kind: 'a' }))
      const late = { afterMs: 60_001, kind: 'a' }
      const { state } = course([...fine, late, ...failing.slice(1)]).at(-1) ?? assert.fail()
      assert.equal(state.phase, 'stopped')
      assert.deepEqual([state.stop?.failures, state.stop?.runs], [20, 20])
    }),
    { numRuns: 20 },
  )
})

test('Runs that fail each for a reason of its own do not stop it, nor do few among many.', () => {
  fc.assert(
    fc.property(runs(['a', 'b', 'c'], 200), (history) => {
      // No kind is half of the runs when they take turns.
      const turn = history.map(({ afterMs }, i) => ({ afterMs, kind: 'abc'[i % 3] }))
      assert.ok(course(turn).every(({ state }) => state.phase === 'running'))
    }),
  )
  fc.assert(
    fc.property(runs([undefined, undefined, undefined], 50), (history) => {
      const few = history.map(({ afterMs }, i) => ({
        afterMs,
        kind: i % 3 === 0 ? 'a' : undefined,
      }))
      assert.ok(course(few).every(({ state }) => state.phase === 'running'))
    }),
  )
})

/** Runs until it stands still. */
function stoppedAt(at: number, before: KillSwitchState = RUNNING): KillSwitchState {
  let state = before
  for (let i = 0; i < 20; i++)
    state = killSwitchAfter(state, { as: 'failed', kind: 'a' }, at, settings)
  assert.equal(state.phase, 'stopped')
  return state
}

test('After a stop one handler runs at a time; one success lets all go on, three failures of the kind stop it for twice as long.', () => {
  let state = stoppedAt(START)
  assert.equal(killSwitchSlots(state, 10), 0)
  assert.equal(killSwitchAt(state, START + 59_999), state)
  const lengths: number[] = []
  for (let round = 0; round < 6; round++) {
    const until = state.stop?.until ?? assert.fail()
    state = killSwitchAt(state, until)
    assert.equal(killSwitchSlots(state, 10), 1)
    state = killSwitchAfter(state, { as: 'failed', kind: 'other' }, until, settings)
    for (let i = 0; i < 3; i++) {
      assert.equal(state.phase, 'trial')
      state = killSwitchAfter(state, { as: 'failed', kind: 'a' }, until, settings)
    }
    lengths.push((state.stop?.until ?? 0) - until)
  }
  assert.deepEqual(lengths, [120_000, 240_000, 480_000, 600_000, 600_000, 600_000])
  const trial = killSwitchAt(state, state.stop?.until ?? 0)
  assert.deepEqual(killSwitchAfter(trial, { as: 'ok' }, START, settings), RUNNING)
})

test('What ended while it was stopped changes nothing, and a state survives JSON.', () => {
  fc.assert(
    fc.property(runs([undefined, 'a'], 2_000), (history) => {
      const stopped = stoppedAt(START)
      for (const { kind } of history) {
        const event =
          kind === undefined ? ({ as: 'ok' } as const) : ({ as: 'failed', kind } as const)
        assert.equal(killSwitchAfter(stopped, event, START + 1, settings), stopped)
      }
      for (const { state, at } of course(history)) {
        const read: KillSwitchState = { ...RUNNING, ...JSON.parse(JSON.stringify(state)) }
        assert.deepEqual(
          killSwitchAfter(read, { as: 'failed', kind: 'a' }, at, settings),
          killSwitchAfter(state, { as: 'failed', kind: 'a' }, at, settings),
        )
        // Bounded however long it runs: ten steps of twenty kinds.
        assert.ok(state.window.length <= 11)
      }
    }),
  )
})
