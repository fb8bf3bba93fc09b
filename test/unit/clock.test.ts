import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pause, systemClock } from '../../src/model/clock.ts'

const TIMER_MAX_MS = 2_147_483_647

test('a wait beyond 2^31 - 1 ms does not end at once, as a timer of Node would', async (t) => {
  let fired = 0
  const cancels = [TIMER_MAX_MS + 1, 2 ** 40, Number.MAX_SAFE_INTEGER].map((ms) =>
    systemClock().after(ms, () => void fired++),
  )
  t.after(() => {
    for (const cancel of cancels) cancel()
  })
  // Longer than the 1 ms after which Node fires a timer that is too long.
  await pause(systemClock(), 20)
  assert.equal(fired, 0)
})

test('a wait beyond 2^31 - 1 ms ends when all of it is over, and not before', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let fired = 0
  systemClock().after(2 * TIMER_MAX_MS + 1_000, () => void fired++)
  for (const ms of [TIMER_MAX_MS, TIMER_MAX_MS, 999]) t.mock.timers.tick(ms)
  assert.equal(fired, 0)
  t.mock.timers.tick(1)
  assert.equal(fired, 1)
})

test('when a timer fires, the time it was set for has come, also by the clock', async () => {
  const clock = systemClock()
  const early: number[] = []
  for (let round = 0; round < 20; round++) {
    const waits = Array.from({ length: 20 }, async (_, at) => {
      const dueAt = clock.now() + at + 1
      await pause(clock, at + 1)
      if (clock.now() < dueAt) early.push(dueAt - clock.now())
    })
    await Promise.all(waits)
  }
  assert.deepEqual(early, [])
})

test('a clock that was set back keeps no timer', async (t) => {
  const { now } = Date
  t.after(() => {
    Date.now = now
  })
  const waited = pause(systemClock(), 20)
  Date.now = () => now() - 3_600_000
  await waited
})
