import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { silentLogger } from 'millrace'
import { killSwitchAfter, killSwitchAt, killSwitchSlots, RUNNING } from 'millrace/flow'
import { consumerSwitch } from '../../src/flow/consumer-switch.ts'
import { virtualClock } from '../../src/testing/virtual-clock.ts'

const settings = { failures: 5, share: 0.5, windowMs: 60_000, resumeAfterMs: 60_000 }
const SLOTS = 10

/** What a consumer sees: its own runs, and messages that come back from a worker that died. */
const seen = fc.record({
  afterMs: fc.integer({ min: 2_000, max: 15_000 }),
  what: fc.oneof(
    fc.record({ as: fc.constantFrom('ok' as const, 'failed' as const) }),
    fc.record({
      as: fc.constant('died' as const),
      /** When each of its messages was missed, after the first of them. */
      messages: fc.array(fc.integer({ min: 0, max: 999 }), { minLength: 1, maxLength: 60 }),
      /** How long ago by this consumer's clock; less than nothing by one that is ahead. */
      agoMs: fc.oneof(fc.constant(0), fc.integer({ min: -50_000, max: 150_000 })),
    }),
  ),
})

test('Whatever a dead worker had in its hands, it counts as one failure of now, or as none once the window is over.', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(seen, { maxLength: 60 }), async (history) => {
      const clock = virtualClock()
      const own = consumerSwitch({
        ...{ queue: 'q', settings, clock, logger: silentLogger, store: undefined },
      })
      let state = RUNNING
      const counted: number[] = []
      for (const { afterMs, what } of history) {
        await clock.advance(afterMs)
        const now = clock.now()
        state = killSwitchAt(state, now)
        const note = (event: Parameters<typeof killSwitchAfter>[1]): void => {
          state = killSwitchAfter(state, event, now, settings)
        }
        if (what.as === 'died') {
          const at = now - what.agoMs
          // Two that died at the same moment may be one.
          if (counted.some((other) => Math.abs(other - at) < 2_000)) continue
          counted.push(at)
          const first = Math.min(...what.messages)
          for (const ms of what.messages) own.died(at + ms - first, now)
          if (what.agoMs < settings.windowMs) note({ as: 'failed', kind: 'crashed' })
        } else {
          const event = what.as === 'ok' ? { as: what.as } : { as: what.as, kind: 'x' }
          own.note(event, now)
          note(event)
        }
        // Messages of earlier deaths begin once more.
        for (const at of counted) own.died(at, now)
        assert.equal(own.slots(SLOTS), killSwitchSlots(state, SLOTS))
        assert.equal(own.problem()?.match(/\d+ of \d+ runs/)?.[0], saidOf(state))
      }
      own.close()
    }),
  )
})

function saidOf({ phase, stop }: typeof RUNNING): string | undefined {
  return phase === 'stopped' && stop ? `${stop.failures} of ${stop.runs} runs` : undefined
}
