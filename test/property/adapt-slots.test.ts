import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { adaptSlots, firstSlots, type SlotLook } from 'millrace/flow'
import { byDepth } from '../depth.ts'
import { courseOf, type SlotWorld, turns } from '../flow/slot-world.ts'
import { seeded } from '../runtime/stage.ts'

// fast-check prints seed and path of a failure; MILLRACE_SEED repeats a run, MILLRACE_DEPTH=long makes many.
const RUNS = byDepth({ quick: 4, full: 10, long: 300 })
const options = {
  numRuns: RUNS,
  ...(process.env['MILLRACE_SEED'] ? { seed: Number(process.env['MILLRACE_SEED']) } : {}),
}
const HOUR_MS = 3_600_000
const TARGET_MS = 10_000

const seed = fc.integer({ min: 1, max: 2 ** 31 })
const chance = fc.constantFrom('none' as const, 'exponential' as const)
/** Handlers that would run side by side for ever. */
const load = fc.double({ min: 0.2, max: 40, noNaN: true })
const handlerMs = fc.constantFrom(100, 300, 1_000, 5_000, 20_000)

/** A look shows what many of these did. */
const quick = fc.constantFrom(100, 300, 1_000)

interface Drawn {
  readonly seed: number
  readonly chance: SlotWorld['chance']
  readonly load: number
  readonly handlerMs: number
}

function world(drawn: Drawn, more: Partial<SlotWorld> = {}): SlotWorld {
  return {
    settings: { min: 1, max: 64, targetAgeMs: TARGET_MS },
    random: seeded(drawn.seed),
    arrivals: () => (drawn.load * 1_000) / drawn.handlerMs,
    handlerMs: drawn.handlerMs,
    chance: drawn.chance,
    forMs: HOUR_MS,
    ...more,
  }
}

const drawn = fc.record({ seed, chance, load, handlerMs })

test('Under a constant load the slots change direction a bounded number of times, and enough of them stay.', () => {
  fc.assert(
    fc.property(drawn, (one) => {
      const { slots, ages } = courseOf(world(one))
      const late = slots.slice(slots.length / 2)
      // An hour has room for holds of 1, 2, 4, … minutes: 6 of them, with a turn at both ends.
      assert.ok(turns(slots) <= 16, `${turns(slots)} turns: ${slots}`)
      assert.ok(slots.every((n) => Number.isInteger(n) && n >= 1 && n <= 64))
      // Few slots for handlers that take longer than a look see the queue late, not never.
      const patience = TARGET_MS + 3 * one.handlerMs
      const old = ages.slice(late.length).filter((ms) => ms > patience).length
      assert.ok(old <= late.length * 0.1, `${old} of ${late.length} looks above ${patience} ms`)
    }),
    options,
  )
})

test('Without chance in it the slots go up, come down once at most, and rest.', () => {
  fc.assert(
    fc.property(fc.record({ seed, load, handlerMs: quick }), (one) => {
      const { slots } = courseOf(world({ ...one, chance: 'none' }))
      const late = slots.slice(slots.length / 2)
      assert.ok(turns(slots) <= 1, `${slots}`)
      assert.equal(new Set(late).size, 1, `${late}`)
      const last = late.at(-1) ?? 0
      assert.ok(last >= Math.floor(one.load), `${last} slots for ${one.load}`)
      assert.ok(last <= Math.max(2, (one.load + 1) / 0.45), `${last} slots for ${one.load}`)
    }),
    options,
  )
})

test('A step of the load is followed, up and down.', () => {
  fc.assert(
    fc.property(seed, fc.constantFrom(300, 1_000), (one, ms) => {
      const up = (at: number): number => (at < HOUR_MS / 3 ? 2 : at < (2 * HOUR_MS) / 3 ? 30 : 2)
      const arrivals = (at: number): number => (up(at) * 1_000) / ms
      const { slots, ages } = courseOf(
        world({ seed: one, chance: 'exponential', load: 2, handlerMs: ms }, { arrivals }),
      )
      const third = Math.floor(slots.length / 3)
      const middle = slots.slice(third + 60, 2 * third)
      assert.ok(
        middle.every((n) => n >= 30),
        `five minutes after the step: ${middle}`,
      )
      assert.ok(ages.slice(third + 60, 2 * third).every((age) => age <= TARGET_MS))
      const last = slots.at(-1) ?? 0
      assert.ok(last <= 6, `${last} slots for a load of 2`)
    }),
    options,
  )
})

test('More handlers than what is behind them can bear are taken back.', () => {
  fc.assert(
    fc.property(seed, chance, fc.constantFrom(100, 300, 1_000), (one, by, ms) => {
      const given = { seed: one, chance: by, load: 16, handlerMs: ms }
      const { slots } = courseOf(world(given, { knee: 8 }))
      const late = slots.slice(slots.length / 2)
      const above = late.filter((n) => n > 16).length
      assert.ok(above <= late.length * 0.1, `${above} of ${late.length} looks above: ${slots}`)
      assert.ok(late.every((n) => n >= 4))
      assert.ok(turns(slots) <= 16, `${turns(slots)} turns`)
    }),
    options,
  )
})

const number = fc.double({ min: 0, max: 1e7, noNaN: true })
const look: fc.Arbitrary<SlotLook> = fc.record({
  ageMs: fc.option(number, { nil: undefined }),
  depth: fc.option(number, { nil: undefined }),
  busy: number,
  runs: fc.nat(1e6),
  handlerMs: fc.option(number, { nil: undefined }),
  forMs: fc.double({ min: 1, max: 1e6, noNaN: true }),
})

test('Whatever is seen, the slots stay within their bounds, and the state survives JSON.', () => {
  fc.assert(
    fc.property(fc.array(look, { maxLength: 50 }), fc.nat(99), fc.nat(500), (looks, low, more) => {
      const settings = { min: 1 + low, max: 1 + low + more, targetAgeMs: TARGET_MS }
      let state = firstSlots(settings)
      for (const seen of looks) {
        const stored = JSON.parse(JSON.stringify(state))
        const next = adaptSlots(state, seen, settings)
        assert.deepEqual(adaptSlots({ ...state, ...stored }, seen, settings), next)
        state = next
        assert.ok(Number.isInteger(state.slots))
        assert.ok(state.slots >= settings.min && state.slots <= settings.max)
      }
    }),
    options,
  )
})
