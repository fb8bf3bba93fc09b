import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { claimWatch } from '../../src/runtime/claim-watch.ts'

test('all runs of one claim share one listener, and those that are over leave nothing behind', () => {
  const lost = new AbortController()
  const watch = claimWatch()
  const told: number[] = []
  const runs = Array.from({ length: 1_000 }, (_, n) => () => void told.push(n))
  for (const run of runs) watch.add(lost.signal, run)
  for (const run of runs.slice(3)) watch.remove(lost.signal, run)
  assert.equal(getEventListeners(lost.signal, 'abort').length, 1)
  lost.abort()
  lost.abort()
  assert.deepEqual(told, [0, 1, 2])
})

test('who comes when the claim is lost already is told at once; other claims are not', () => {
  const lost = new AbortController()
  const watch = claimWatch()
  const told: string[] = []
  watch.add(new AbortController().signal, () => void told.push('other'))
  lost.abort()
  watch.add(lost.signal, () => void told.push('late'))
  assert.deepEqual(told, ['late'])
})
