import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AttemptRecord, freshHistory } from '../../../src/model/history.ts'
import { givenBack, lastHistory } from '../../../src/transport/settling.ts'

const attempt: AttemptRecord = { at: 5, errorClass: 'transient', code: 'X', message: 'x' }

test('A message stays alone until a run of it is counted.', () => {
  const alone = { alone: true, history: freshHistory }
  assert.equal(givenBack(alone, { delayMs: 0, counted: false }, 10).alone, true)
  const throttled: AttemptRecord = { ...attempt, errorClass: 'throttled' }
  assert.equal(givenBack(alone, { delayMs: 0, counted: false, attempt: throttled }, 10).alone, true)
  assert.equal(givenBack(alone, { delayMs: 0, counted: true, attempt }, 10).alone, false)
  const free = { alone: false, history: freshHistory }
  assert.equal(givenBack(free, { delayMs: 0, counted: false }, 10).alone, false)
})

test('A release waits no longer than the transport can, and never less than not at all.', () => {
  const message = { alone: false, history: freshHistory }
  const waited = (delayMs: number): number =>
    givenBack(message, { delayMs, counted: false }, 10).delayMs
  const given = [0, 3.5, 10, 11, Number.POSITIVE_INFINITY, -1, Number.NaN]
  assert.deepEqual(given.map(waited), [0, 3.5, 10, 10, 10, 0, 0])
})

test('A dead letter counts its last attempt, unless its history already holds it.', () => {
  const history = { ...freshHistory, counted: 2 }
  assert.deepEqual(lastHistory({ history }, { attempt }), {
    ...history,
    counted: 3,
    records: [attempt],
  })
  assert.equal(lastHistory({ history }, {}), history)
})
