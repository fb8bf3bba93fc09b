import assert from 'node:assert/strict'
import { test } from 'node:test'
import { breakerHeld, CLOSED } from '../../src/flow/breaker.ts'
import { type BreakerFleet, fleetCounted } from '../../src/flow/breaker-fleet.ts'
import { gateThrottled } from '../../src/flow/gate.ts'

const NOW = Date.UTC(2026, 0, 1)
const gate = { startPerSecond: 1, stepMs: 5_000 }
const settings = {
  ...{ failureShare: 0.5, minimum: 10, windowMs: 30_000, openMs: 10_000, openMaxMs: 300_000 },
  gate,
}

test('However many downstreams ask for a pause, what a person holds is not forgotten.', () => {
  const paused = { ...CLOSED, gate: gateThrottled(undefined, 60_000, NOW, gate) }
  const fleet: BreakerFleet = new Map([
    ...Array.from({ length: 1_000 }, (_, n) => [`tenant ${n}`, paused] as const),
    ['held', breakerHeld(CLOSED, 'open')] as const,
    ['open', { ...CLOSED, phase: 'open', until: NOW + 1_000 }] as const,
  ])
  const kept = fleetCounted(fleet, new Map(), NOW, settings)
  assert.equal(kept.size, 400)
  assert.equal(kept.get('held')?.held, 'open')
  assert.equal(kept.get('open')?.phase, 'open')
})
