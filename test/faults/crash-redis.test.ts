import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { backendUrl } from '../backends.ts'
import { runCampaign } from './crash/verdict.ts'

const url = backendUrl('redis 7')

if (url !== undefined) {
  // Effect and ack cannot commit together here; the inbox in SQLite makes the effect happen once.
  for (const [kind, levels] of [
    ['one level', 1],
    ['five levels of priority', 5],
  ] as const) {
    test(`killed at every named point with ${kind}, Redis loses nothing and the inbox doubles no effect`, async (t) => {
      const folder = await mkdtemp(join(tmpdir(), 'millrace-crash-'))
      const file = join(folder, 'effects.db')
      const prefix = `crash-${process.pid}-${levels}`
      try {
        await runCampaign(t, { kind: 'redis', url, prefix, file, levels }, folder)
      } finally {
        await rm(folder, { recursive: true, force: true })
      }
    })
  }
}
