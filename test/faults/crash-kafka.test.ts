import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { backendUrl } from '../backends.ts'
import { byDepth } from '../depth.ts'
import { runCampaign } from './crash/verdict.ts'

const url = backendUrl('kafka')

/** Nothing fails here but processes, so the two differ little. */
const retries = (['hold', 'park'] as const).slice(0, byDepth({ full: 1, long: 2 }))

for (const retry of retries) {
  if (url === undefined) continue
  // Effect and position cannot commit together; the inbox in SQLite makes the effect happen once.
  test(`killed at every named point, Kafka (${retry}) loses nothing and the inbox doubles no effect`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-crash-'))
    const file = join(folder, 'effects.db')
    const prefix = `crash-${retry}-${process.pid}`
    try {
      await runCampaign(t, { kind: 'kafka', retry, url, prefix, file }, folder)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
}
