import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type BackendName, backendUrl } from '../backends.ts'
import { runCampaign } from './crash/verdict.ts'

const subjects: readonly (readonly ['nats' | 'sqs' | 'rabbitmq', BackendName])[] = [
  ['nats', 'nats'],
  ['sqs', 'sqs elasticmq'],
  ['rabbitmq', 'rabbitmq'],
]

for (const [kind, server] of subjects) {
  const url = backendUrl(server)
  if (url === undefined) continue
  // Effect and ack cannot commit together here; the inbox in SQLite makes the effect happen once.
  test(`killed at every named point, ${kind} loses nothing and the inbox doubles no effect`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-crash-'))
    const file = join(folder, 'effects.db')
    try {
      await runCampaign(t, { kind, url, prefix: `crash-${process.pid}`, file }, folder)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
}
