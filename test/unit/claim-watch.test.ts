import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import type { Claim } from '../../src/model/delivery.ts'
import { claimWatch } from '../../src/runtime/claim-watch.ts'

function claimOf(lost: AbortController): Claim {
  return { expiresAt: undefined, ending: new AbortController().signal, lost: lost.signal }
}

test('all runs of one claim share one listener, and those that are over leave nothing behind', () => {
  const lost = new AbortController()
  const claim = claimOf(lost)
  const watch = claimWatch()
  const told: number[] = []
  const runs = Array.from({ length: 1_000 }, (_, n) => () => void told.push(n))
  for (const run of runs) watch.add(claim, run)
  for (const run of runs.slice(3)) watch.remove(claim, run)
  assert.equal(getEventListeners(claim.lost, 'abort').length, 1)
  lost.abort()
  lost.abort()
  assert.deepEqual(told, [0, 1, 2])
})

test('who comes when the claim is lost already is told at once; other claims are not', () => {
  const lost = new AbortController()
  const watch = claimWatch()
  const told: string[] = []
  watch.add(claimOf(new AbortController()), () => void told.push('other'))
  const claim = claimOf(lost)
  lost.abort()
  watch.add(claim, () => void told.push('late'))
  assert.deepEqual(told, ['late'])
})
