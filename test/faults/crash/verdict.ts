import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { byDepth } from '../../depth.ts'
import { seeded } from '../../runtime/stage.ts'
import type { BackendSpec } from './backend.ts'
import { campaign } from './campaign.ts'
import { killPoints } from './recorder.ts'

const KILLS = byDepth({ quick: 10, full: 20, long: 120 })
const MESSAGES = byDepth({ quick: 300, full: 600, long: 3_000 })
const DEADLINE_MS = byDepth({ full: 300_000, long: 900_000 })

/** Runs one campaign and judges it by what the recorder and the database say, not by our own counters. */
export async function runCampaign(
  t: TestContext,
  spec: BackendSpec,
  folder: string,
): Promise<void> {
  const seed = Number(process.env['MILLRACE_SEED'] ?? Math.floor(Math.random() * 1e9))
  t.diagnostic(`seed ${seed}: MILLRACE_SEED=${seed} repeats the order of the kills`)
  const report = await campaign({
    spec,
    recordFile: join(folder, 'record.ndjson'),
    kills: KILLS,
    messages: MESSAGES,
    seed: seeded(seed),
    deadlineMs: DEADLINE_MS,
  })
  const kills = [...report.kills.values()].reduce((sum, n) => sum + n, 0)
  const duplicates = [...report.starts.values()].reduce((sum, n) => sum + n - 1, 0)
  t.diagnostic(
    `${kills} kills (${killPoints.map((at) => `${at}: ${report.kills.get(at) ?? 0}`).join(', ')}), ` +
      `${report.sent.size} messages, ${duplicates} repeated runs, ${report.failed.transient} failed at first, ${report.failed.permanent} for good`,
  )
  assert.ok(kills >= KILLS, `expected ${KILLS} kills, had ${kills}`)
  assert.equal(report.left, 0, 'messages left when the time was over')
  assert.ok(report.sent.size >= MESSAGES, `${report.sent.size} of ${MESSAGES} sent`)
  const { dead } = report
  const isIn = (key: string): boolean => key.startsWith('tx-')
  const lost = [...report.sent].filter((key) => !isIn(key) && !report.ended.has(key))
  assert.deepEqual(lost, [], 'confirmed to the producer, and no handler came to its end')
  const withEffect = [...report.sent].filter(isIn)
  const missing = withEffect.filter((key) => !report.effects.has(key))
  assert.deepEqual(missing, [], 'confirmed to the producer, and its effect never happened')
  const doubled = [...report.effects].filter(([, times]) => times > 1)
  assert.deepEqual(doubled, [], 'effects that happened more than once')
  assert.deepEqual([...dead], [], 'nothing was killed often enough to be dead')
  const { transient, permanent } = report.failed
  assert.ok(transient > 0 && permanent > 0, 'some failed at first, and some for good')
  assert.equal(report.killedRedrives, 1, 'a redrive was killed')
}
