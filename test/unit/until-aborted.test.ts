import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { untilAborted } from '../../src/model/until-aborted.ts'

const never = new Promise<never>(() => undefined)

function signals() {
  const [one, other] = [new AbortController(), new AbortController()]
  return { one, other, both: [one.signal, other.signal] }
}

test('It gives what the work gives, and fails as the work fails', async () => {
  const { both } = signals()
  assert.equal(await untilAborted(Promise.resolve(7), both), 7)
  await assert.rejects(untilAborted(Promise.reject(new Error('no disk')), both), /no disk/)
})

test('Any of the signals ends the wait with its reason, also one that had fired before', async () => {
  const { other, both } = signals()
  const waiting = assert.rejects(untilAborted(never, both), /enough/)
  other.abort(new Error('enough'))
  await waiting
  await assert.rejects(untilAborted(never, both), /enough/)
})

test('Nothing is left at a signal that lives longer than the work', async () => {
  const { one, other, both } = signals()
  await untilAborted(Promise.resolve(), both)
  const waiting = assert.rejects(untilAborted(never, both))
  one.abort()
  await waiting
  assert.deepEqual(getEventListeners(other.signal, 'abort'), [])
})
