import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type BackendName, backendUrl } from '../backends.ts'
import { LEVELS } from './crash/backend.ts'
import { runCampaign } from './crash/verdict.ts'

const subjects: readonly (readonly ['nats' | 'sqs' | 'rabbitmq', BackendName, levels?: number])[] =
  [
    ['nats', 'nats'],
    ['sqs', 'sqs elasticmq'],
    ['rabbitmq', 'rabbitmq'],
    ['nats', 'nats', LEVELS],
    ['rabbitmq', 'rabbitmq', LEVELS],
  ]

for (const [kind, server, levels] of subjects) {
  const url = backendUrl(server)
  if (url === undefined) continue
  const on = levels === undefined ? kind : `${kind} with ${levels} levels of priority`
  // Effect and ack cannot commit together here; the inbox in SQLite makes the effect happen once.
  test(`killed at every named point, ${on} loses nothing and the inbox doubles no effect`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-crash-'))
    const at = { url, prefix: `crash-${process.pid}-${levels ?? 1}` }
    const spec = { kind, ...at, file: join(folder, 'effects.db'), ...(levels && { levels }) }
    try {
      await runCampaign(t, spec, folder)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
}
