import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { backendUrl } from '../backends.ts'
import { freshPrefix } from '../transports/redis-servers.ts'
import { runCampaign } from './crash/verdict.ts'

const url = backendUrl('redis 7')

if (url !== undefined) {
  // Effect and ack cannot commit together here; the inbox in SQLite makes the effect happen once.
  for (const [kind, more] of [
    ['one level', {}],
    ['five levels of priority', { levels: 5 }],
    ['two levels, each shared out among fair keys', { levels: 2, fair: true }],
  ] as const) {
    test(`killed at every named point with ${kind}, Redis loses nothing and the inbox doubles no effect`, async (t) => {
      const folder = await mkdtemp(join(tmpdir(), 'millrace-crash-'))
      const file = join(folder, 'effects.db')
      const prefix = freshPrefix()
      try {
        await runCampaign(t, { kind: 'redis', url, prefix, file, ...more }, folder)
      } finally {
        await rm(folder, { recursive: true, force: true })
      }
    })
  }
}
