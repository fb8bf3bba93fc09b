import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createMillrace, defineQueue, hasCode, silentLogger } from 'millrace'
import { postgres } from 'millrace/postgres'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'

const queue = defineQueue({ name: 'q', owner: 'team', payload: z.string() })
const common = { queues: [queue], logger: silentLogger }

test('a backend that is not there is MILLRACE_UNAVAILABLE in one line that says what and why', async () => {
  const transport = postgres({ url: 'postgres://nobody:s3cret@127.0.0.1:1/none' })
  await assert.rejects(createMillrace({ ...common, transport }), (error: unknown) => {
    assert.ok(hasCode(error, 'MILLRACE_UNAVAILABLE'), String(error))
    const { message } = error as Error
    assert.match(message, /postgres cannot be opened \(ECONNREFUSED/)
    assert.ok(!message.includes('s3cret') && !message.includes('\n'))
    return true
  })
})

test('who only looks leaves no file behind', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-look-'))
  try {
    const file = join(folder, 'mistyped.db')
    await assert.rejects(
      createMillrace({ ...common, transport: sqlite({ file }), migrate: 'check' }),
      (error: unknown) => hasCode(error, 'MILLRACE_SCHEMA_OUTDATED'),
    )
    assert.equal(existsSync(file), false)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
