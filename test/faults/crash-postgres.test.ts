import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { backendUrl } from '../backends.ts'
import { runSleeper } from './crash/sleep.ts'
import { runCampaign } from './crash/verdict.ts'

const url = backendUrl('postgres 18')

if (url !== undefined) {
  test('killed at every named point, Postgres loses nothing and doubles no effect', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-crash-'))
    try {
      await runCampaign(t, { kind: 'postgres', url, schema: `crash_${process.pid}` }, folder)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('a worker stopped past its lease cannot commit on Postgres, and nobody waits for it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-sleep-'))
    try {
      await runSleeper({ kind: 'postgres', url, schema: `sleep_${process.pid}` }, folder)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
}
