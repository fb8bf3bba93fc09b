import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type AttemptHistory,
  type AttemptRecord,
  afterCrash,
  afterRedrive,
  afterRelease,
  freshHistory,
} from '../../src/model/history.ts'

const record = (at: number): AttemptRecord => ({
  at,
  errorClass: 'transient',
  code: 'X',
  message: 'x',
})

function times(count: number, step: (history: AttemptHistory, at: number) => AttemptHistory) {
  let history = freshHistory
  for (let at = 1; at <= count; at++) history = step(history, at)
  return history
}

test('the first and the last 20 failed attempts are kept, and all of them counted', () => {
  const release = (history: AttemptHistory, at: number): AttemptHistory =>
    afterRelease(history, { counted: true, attempt: record(at) })
  const all = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1)
  const kept = (history: AttemptHistory): number[] => history.records.map(({ at }) => at)
  assert.deepEqual(kept(times(40, release)), all(40))
  const long = times(100, release)
  assert.deepEqual(kept(long), [...all(20), ...all(100).slice(-20)])
  assert.equal(long.counted, 100)
  // Crashes are written down by the same bound.
  assert.deepEqual(kept(times(100, afterCrash)), [...all(20), ...all(100).slice(-20)])
})

test('a message that three crashes killed may run again after a redrive, three times over', () => {
  const killed = times(3, afterCrash)
  assert.deepEqual([killed.counted, killed.crashes, killed.records.length], [3, 3, 3])
  assert.deepEqual(afterRedrive({ ...killed, throttledSince: 5 }), {
    counted: 0,
    crashes: 0,
    throttledSince: undefined,
    records: killed.records,
    redrives: 1,
  })
})

test('throttled since its first throttle: no other failure in between begins that time anew', () => {
  const throttled = (at: number): AttemptRecord => ({ ...record(at), errorClass: 'throttled' })
  const ends = [throttled(5), record(7), throttled(9)]
  const since = ends.map((_, i) => {
    const before = ends.slice(0, i + 1)
    return before.reduce(
      (history, attempt) => afterRelease(history, { counted: true, attempt }),
      freshHistory,
    ).throttledSince
  })
  assert.deepEqual(since, [5, 5, 5])
  assert.equal(afterCrash({ ...freshHistory, throttledSince: 5 }, 8).throttledSince, 5)
})
