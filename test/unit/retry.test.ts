import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Classification } from '../../src/model/classify.ts'
import { afterCrash, freshHistory } from '../../src/model/history.ts'
import {
  afterFailure,
  backoffMs,
  beforeRun,
  retryHorizonMs,
  retrySchedule,
  throttleDelayMs,
} from '../../src/model/retry.ts'

const retry = { attempts: 8, baseMs: 1_000, maxMs: 3_600_000 }
const HOUR = 3_600_000
const DAY = 24 * HOUR
const highest = (): number => 0.999_999_999
const lowest = (): number => 0

const transient: Classification = { errorClass: 'transient', code: 'HTTP_500', why: 'it failed' }
const throttled: Classification = { errorClass: 'throttled', code: 'HTTP_429', why: 'slow down' }
const permanent: Classification = { errorClass: 'permanent', code: 'HTTP_410', why: 'gone' }

const fail = (
  classification: Classification,
  history = freshHistory,
  random = highest,
  now = 0,
): ReturnType<typeof afterFailure> => afterFailure({ classification, history, retry, now, random })

test('the backoff doubles from baseMs to maxMs and is spread from 0 to there', () => {
  const ceilings = [1, 2, 3, 4, 12, 13, 60, 1e9].map((k) => backoffMs(k, retry, highest))
  const expected = [999, 1_999, 3_999, 7_999, 2_047_999, 3_599_999, 3_599_999, 3_599_999]
  assert.deepEqual(ceilings, expected)
  assert.equal(backoffMs(5, retry, lowest), 0)
  assert.equal(
    backoffMs(2, retry, () => 0.25),
    500,
  )
})

test('a generator that answers nonsense never makes a tight loop or a wait beyond maxMs', () => {
  assert.equal(
    backoffMs(1, retry, () => Number.NaN),
    1_000,
  )
  assert.equal(
    backoffMs(1, retry, () => 7),
    1_000,
  )
  assert.equal(
    backoffMs(1, retry, () => -7),
    0,
  )
})

test('a throttled message waits what it was told, at most 24 h, plus up to 10 %, never earlier', () => {
  assert.equal(throttleDelayMs(60_000, retry, lowest), 60_000)
  assert.equal(throttleDelayMs(60_000, retry, highest), 65_999)
  assert.equal(throttleDelayMs(1.5, retry, lowest), 2)
  assert.equal(throttleDelayMs(1e18, retry, lowest), DAY)
  assert.equal(throttleDelayMs(1e18, retry, highest), DAY + DAY / 10 - 1)
})

test('a throttled message that was told nothing usable waits the first backoff', () => {
  for (const told of [undefined, 0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.equal(
      throttleDelayMs(told, retry, () => 0.5),
      500,
      String(told),
    )
  }
})

test('a permanent failure is dead at once', () => {
  assert.deepEqual(fail(permanent), {
    as: 'dead',
    errorClass: 'permanent',
    reason: 'permanent: HTTP_410',
  })
})

test('a transient failure counts, and the last attempt is followed by death', () => {
  assert.deepEqual(fail(transient), { as: 'released', delayMs: 999, counted: true })
  const third = { ...freshHistory, counted: 2 }
  assert.deepEqual(fail(transient, third), { as: 'released', delayMs: 3_999, counted: true })
  const seventh = { ...freshHistory, counted: 6 }
  assert.equal(fail(transient, seventh).as, 'released')
  assert.deepEqual(fail(transient, { ...freshHistory, counted: 7 }), {
    as: 'dead',
    errorClass: 'transient',
    reason: 'attempt 8 of 8 failed: HTTP_500',
  })
})

test('a delay that the handler named replaces the backoff, capped at maxMs; an unusable one is ignored', () => {
  const delays = [0, 1.2, 250, 1e12, -1, Number.NaN, Number.POSITIVE_INFINITY].map((delayMs) => {
    const decision = fail({ ...transient, delayMs })
    return decision.as === 'released' ? decision.delayMs : decision
  })
  assert.deepEqual(delays, [0, 2, 250, HOUR, 999, 999, 999])
})

test('a throttled failure spends no attempt, even on the last one', () => {
  const last = { ...freshHistory, counted: 7 }
  assert.deepEqual(fail({ ...throttled, delayMs: 5_000 }, last, lowest), {
    as: 'released',
    delayMs: 5_000,
    counted: false,
  })
})

test('a message throttled for more than 24 h since its first throttle is dead', () => {
  const since = { ...freshHistory, throttledSince: 1_000 }
  assert.equal(fail(throttled, since, lowest, 1_000 + DAY).as, 'released')
  assert.deepEqual(fail(throttled, since, lowest, 1_001 + DAY), {
    as: 'dead',
    errorClass: 'throttled',
    reason: 'throttled for more than 24 h: HTTP_429',
  })
})

test('three crashes or used-up attempts forbid another run', () => {
  assert.equal(beforeRun(freshHistory, retry), undefined)
  assert.equal(beforeRun({ ...freshHistory, counted: 7, crashes: 2 }, retry), undefined)
  assert.deepEqual(beforeRun({ ...freshHistory, counted: 3, crashes: 3 }, retry), {
    as: 'dead',
    errorClass: 'crashed',
    reason: '3 workers vanished with this message in their hands',
  })
  assert.equal(beforeRun({ ...freshHistory, counted: 8, crashes: 1 }, retry)?.errorClass, 'crashed')
  const crashed = afterCrash({ ...freshHistory, counted: 1 }, 0)
  assert.match(
    beforeRun(crashed, { attempts: 2 })?.reason ?? '',
    /^2 of 2 attempts were used up before this run, the last one by the death of its worker/,
  )
})

test('attempts lowered by a deploy kill with the class of what really happened', () => {
  const record = (errorClass: 'transient' | 'throttled') =>
    ({ at: 0, errorClass, code: 'X', message: 'x' }) as const
  const history = {
    ...freshHistory,
    counted: 5,
    records: [record('transient'), record('throttled')],
  }
  assert.equal(beforeRun(history, { attempts: 3 })?.errorClass, 'transient')
})

test('the horizon covers every wait at its longest and the longest throttling', () => {
  assert.equal(retryHorizonMs(retry), 7 * HOUR + DAY + 1.1 * DAY)
  assert.equal(retryHorizonMs({ ...retry, attempts: 1 }), 2.1 * DAY)
  // A first backoff that is longer than a day is how long one waits that was told nothing.
  const slow = { attempts: 1, baseMs: 2 * DAY, maxMs: 3 * DAY }
  assert.equal(retryHorizonMs(slow), DAY + 2 * DAY)
})

test('the schedule lists the waits between attempts', () => {
  const steps = retrySchedule({ attempts: 4, baseMs: 1_000, maxMs: 3_000 })
  assert.deepEqual(steps, [
    { attempt: 1, maxDelayMs: 1_000, totalMaxMs: 1_000 },
    { attempt: 2, maxDelayMs: 2_000, totalMaxMs: 3_000 },
    { attempt: 3, maxDelayMs: 3_000, totalMaxMs: 6_000 },
  ])
})
