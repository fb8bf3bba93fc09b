import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { overload, overloadChart } from '../../bench/overload.ts'

/** 4 seconds, or minutes at full depth. */
const SECONDS = process.env.MILLRACE_DEPTH === 'full' ? 60 : 4

test('a producer at three times the rate of the workers: the queue stays within its bound, and what was accepted is handled', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-overload-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const plan = {
    file: join(folder, 'overload.db'),
    seconds: SECONDS,
    maxDepth: 100,
    perSecond: 100,
  }
  const result = await overload(plan)
  const { seconds, accepted, handled, refused } = result
  assert.equal(handled, accepted)
  assert.equal(accepted + refused, SECONDS * 3 * plan.perSecond)
  assert.ok(refused > 0)
  assert.ok(Math.max(...seconds.map(({ depth }) => depth)) <= plan.maxDepth)
  const early = seconds[Math.floor(SECONDS / 4)]?.memoryMb ?? 0
  const late = seconds[SECONDS - 1]?.memoryMb ?? 0
  assert.ok(late < early + 64, `${early} MB grew to ${late} MB`)
  const drawing = overloadChart(result, plan)
  assert.match(drawing, /^<svg .*<\/svg>\n$/s)
  assert.doesNotMatch(drawing, /NaN|Infinity|undefined/)
})
