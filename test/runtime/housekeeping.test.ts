import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineQueue, silentLogger } from 'millrace'
import { virtualClock } from 'millrace/testing'
import { resolveTtlMs } from '../../src/inbox/ttl.ts'
import { neededInboxTtlMs } from '../../src/runtime/horizon.ts'
import { startHousekeeping } from '../../src/runtime/housekeeping.ts'
import { orderSchema } from './stage.ts'

const DAY_MS = 86_400_000

test('what the inbox need not know any more is removed in small batches, now and then', async () => {
  const clock = virtualClock()
  let left = 2_500
  const batches: number[] = []
  const prune = async (max: number): Promise<number> => {
    const gone = Math.min(max, left)
    left -= gone
    batches.push(gone)
    return gone
  }
  const parts = { inbox: { prune }, store: undefined }
  const keeping = startHousekeeping({ clock, parts, random: () => 0.5, logger: silentLogger })
  await clock.advance(59_999)
  assert.deepEqual(batches, [])
  await clock.advance(1)
  assert.deepEqual(batches, [1_000, 1_000, 500])
  await clock.advance(60_000)
  assert.deepEqual(batches.slice(3), [0])
  keeping.stop()
  await clock.advance(600_000)
  assert.equal(batches.length, 4)
})

test('a failing inbox is told of and asked again', async () => {
  const clock = virtualClock()
  let asked = 0
  const warned: string[] = []
  const prune = async (): Promise<number> => {
    asked++
    throw new Error('away')
  }
  const logger = { ...silentLogger, warn: (message: string) => void warned.push(message) }
  const parts = { inbox: { prune }, store: undefined }
  const keeping = startHousekeeping({ clock, parts, random: () => 0.5, logger })
  await clock.advance(120_000)
  assert.equal(asked, 2)
  assert.match(warned[0] ?? '', /^pruning the inbox failed/)
  keeping.stop()
})

test('a sweep that the end of the app cuts off is not said to be tried again', async () => {
  const clock = virtualClock()
  const cut = Promise.withResolvers<number>()
  const warned: string[] = []
  const logger = { ...silentLogger, warn: (message: string) => void warned.push(message) }
  const parts = { inbox: { prune: () => cut.promise }, store: undefined }
  const keeping = startHousekeeping({ clock, parts, random: () => 0.5, logger })
  await clock.advance(60_000)
  keeping.stop()
  cut.reject(new Error('the connection was closed'))
  await clock.advance(60_000)
  assert.deepEqual(warned, [])
})

test('keys are kept as long as the queues need, at least 7 days; less is refused', () => {
  assert.equal(resolveTtlMs('inbox', undefined, 3 * DAY_MS), 7 * DAY_MS)
  assert.equal(resolveTtlMs('inbox', undefined, 30 * DAY_MS), 30 * DAY_MS)
  assert.equal(resolveTtlMs('inbox', 3 * DAY_MS, 3 * DAY_MS), 3 * DAY_MS)
  assert.throws(() => resolveTtlMs('inbox', 3 * DAY_MS - 1, 3 * DAY_MS), {
    code: 'MILLRACE_INVALID_OPTIONS',
  })
})

test('a duplicate can be late by every retry, throttle and run of the slowest queue, a day, and the time for redrives', () => {
  const base = { owner: 'team-orders', payload: orderSchema }
  const quick = defineQueue({ ...base, name: 'quick', retry: { attempts: 1 } })
  const slow = defineQueue({
    ...base,
    name: 'slow',
    handlerTimeoutMs: 600_000,
    retry: { attempts: 8, maxMs: 3_600_000 },
  })
  const retriesMs = 7 * 3_600_000
  const throttledMs = DAY_MS + 1.1 * DAY_MS
  const runsMs = 8 * (600_000 + 5_000)
  assert.equal(
    neededInboxTtlMs({ queues: [quick, slow], redriveWindowMs: 14 * DAY_MS }),
    retriesMs + throttledMs + runsMs + DAY_MS + 14 * DAY_MS,
  )
})
