import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { runSleeper } from './crash/sleep.ts'
import { runCampaign } from './crash/verdict.ts'

test('killed at every named point, SQLite loses nothing and doubles no effect', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-crash-'))
  try {
    await runCampaign(t, { kind: 'sqlite', file: join(folder, 'crash.db') }, folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('a worker stopped past its lease cannot commit on SQLite, and nobody waits for it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-sleep-'))
  try {
    await runSleeper({ kind: 'sqlite', file: join(folder, 'sleep.db') }, folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
