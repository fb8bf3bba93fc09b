import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from 'millrace'
import { memoryStore } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { breakerHeld, CLOSED } from '../../src/flow/breaker.ts'
import { type BreakerFleet, fleetCounted } from '../../src/flow/breaker-fleet.ts'
import { breakers } from '../../src/flow/breakers.ts'
import { gateThrottled } from '../../src/flow/gate.ts'
import { connectStore } from '../stores/store-harness.ts'

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

test('That more downstreams ask for a pause than are remembered is said, once in ten minutes.', async () => {
  const clock = virtualClock()
  const lines: string[] = []
  const say = (line: string): void => void (line.includes('remembered') && lines.push(line))
  const logger = { debug: say, info: say, warn: say, error: say }
  const made = breakers({
    queue: 'q',
    settings,
    clock,
    random: Math.random,
    logger,
    store: undefined,
  })
  const pauseAll = async (many: number): Promise<void> => {
    for (let i = 0; i < many; i++) made.throttled({ downstream: `t${i}`, probe: undefined }, 1_000)
    await clock.advance(2_000)
  }
  await pauseAll(399)
  assert.deepEqual(lines, [])
  await pauseAll(450)
  await pauseAll(450)
  assert.equal(lines.length, 1)
  assert.match(lines[0] ?? '', /^queue "q": 400 downstreams fail or ask for a pause, and no more/)
  await clock.advance(600_000)
  await pauseAll(450)
  assert.equal(lines.length, 2)
  made.close()
})

test('A look at the store that the end of the app cuts off is not said to be tried again.', async () => {
  const clock = virtualClock()
  const lines: string[] = []
  const logger = { ...silentLogger, warn: (line: string) => void lines.push(line) }
  const store = await connectStore(memoryStore(), clock)
  const cut = Promise.withResolvers<never>()
  const states = { ...store.states, read: () => cut.promise }
  const app = new AbortController()
  const common = { queue: 'q', settings, clock, random: Math.random, logger }
  const made = breakers({ ...common, store: { ...store, states }, closed: app.signal })
  const looked = made.ready()
  app.abort()
  cut.reject(new Error('the store is closed'))
  await looked
  made.close()
  assert.deepEqual(lines, [])
})
