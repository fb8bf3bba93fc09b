import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { nowMs } from '../../bench/contender.ts'
import { overload, overloadChart } from '../../bench/overload.ts'
import { byDepth } from '../depth.ts'

const SECONDS = byDepth({ quick: 4, full: 60, long: 240 })
/** On a busy machine a process or its disk may stand still for so long. */
const STILL_MS = 3_000

test('a producer at three times the rate of the workers: the queue stays within its bound, and what was accepted is handled', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-overload-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const plan = {
    file: join(folder, 'overload.db'),
    seconds: SECONDS,
    maxDepth: 100,
    perSecond: 100,
  }
  const from = nowMs()
  const result = await overload(plan)
  const tookMs = nowMs() - from
  const { seconds, accepted, handled, refused } = result
  assert.equal(handled, accepted)
  assert.equal(accepted + refused, SECONDS * 3 * plan.perSecond)
  assert.ok(refused > 0)
  assert.ok(Math.max(...seconds.map(({ depth }) => depth)) <= plan.maxDepth)
  const slowestMs = Math.max(...seconds.map((second) => second.slowestMs))
  const boundMs = (plan.maxDepth / handled) * tookMs + STILL_MS
  assert.ok(slowestMs > 0 && slowestMs <= boundMs, `${slowestMs} ms, not ${boundMs} at most`)
  const early = seconds[Math.floor(SECONDS / 4)]?.memoryMb ?? 0
  const late = seconds[SECONDS - 1]?.memoryMb ?? 0
  assert.ok(late < early + 64, `${early} MB grew to ${late} MB`)
  const drawing = overloadChart(result, plan)
  assert.match(drawing, /^<svg .*<\/svg>\n$/s)
  assert.doesNotMatch(drawing, /NaN|Infinity|undefined/)
})
