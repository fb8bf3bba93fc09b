import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { overshoot } from '../../bench/overshoot.ts'

test('Three processes that send as fast as they can fill a queue that counts exactly to its last place, and no further.', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-overshoot-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const place = join(folder, 'overshoot.db')
  const plan = { backend: 'sqlite', place, maxDepth: 500, senders: 3 } as const
  const { accepted, perSecond } = await overshoot(plan)
  assert.equal(accepted, 500)
  assert.ok(perSecond > 0)
})
