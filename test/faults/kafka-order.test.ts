import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { backendUrl } from '../backends.ts'
import { campaign } from './order-campaign.ts'

const url = backendUrl('kafka')

if (url !== undefined)
  test('kafka: workers are killed and stopped past their session, and each key has all its effects, once and in order', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-order-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    const files = { file: join(folder, 'effects.db'), storeFile: join(folder, 'store.db') }
    const at = { url, prefix: `order-${process.pid}-` }
    await campaign(t, { kind: 'kafka', ...at, ...files }, join(folder, 'record.ndjson'))
  })
