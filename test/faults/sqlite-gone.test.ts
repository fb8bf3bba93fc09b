import assert from 'node:assert/strict'
import { rename, rm, writeFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import Database from 'better-sqlite3'
import { type App, createMillrace, defineQueue, type MillraceOptions } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { memory } from 'millrace/memory'
import { sqliteOutbox } from 'millrace/outbox'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'
import { databaseFile } from '../transports/sqlite-harness.ts'

const queue = defineQueue({ name: 'q', owner: 'team', payload: z.string() })

async function privateFile(t: TestContext): Promise<string> {
  const { file, dispose } = await databaseFile()
  t.after(dispose)
  return file
}

async function open(t: TestContext, options: Omit<MillraceOptions, 'queues'>): Promise<App> {
  const app = await createMillrace({ ...options, queues: [queue] })
  t.after(() => app.close())
  return app
}

/** Moved away, moved back, and another one in its place: what health says each time. */
async function assertSeen(app: App, file: string): Promise<void> {
  const well = { ok: true, reasons: [] }
  assert.deepEqual(await app.health(), well)
  await rename(file, `${file}.away`)
  const gone = await app.health()
  assert.deepEqual([gone.ok, gone.reasons.length], [false, 1])
  const [reason = ''] = gone.reasons
  assert.ok(reason.includes(file), reason)
  assert.match(
    reason,
    /^SQLite file \S+ was deleted or moved .*; move it back, or stop the app, [^\n]+$/,
  )
  await rename(`${file}.away`, file)
  assert.deepEqual(await app.health(), well)

  await rename(file, `${file}.away`)
  await writeFile(file, '')
  const replaced = await app.health()
  assert.deepEqual([replaced.ok, replaced.reasons.length], [false, 1])
  assert.match(replaced.reasons[0] ?? '', /^SQLite file \S+ was replaced by another .*; [^\n]+$/)
  await rm(file)
}

test('health: a SQLite file that was deleted or replaced under the app', async (t) => {
  const file = await privateFile(t)
  await assertSeen(await open(t, { transport: sqlite({ file }) }), file)
})

for (const [client, handleOf] of [
  ['node:sqlite', (file: string) => new DatabaseSync(file)],
  ['better-sqlite3', (file: string) => new Database(file)],
] as const) {
  test(`health: the file of a given handle, ${client}`, async (t) => {
    const file = await privateFile(t)
    const db = handleOf(file)
    t.after(() => db.close())
    await assertSeen(await open(t, { transport: sqlite({ db }) }), file)
  })
}

test('health: the file of an inbox', async (t) => {
  const file = await privateFile(t)
  await assertSeen(await open(t, { transport: memory(), inbox: sqliteInbox({ file }) }), file)
})

test('health: the file of an outbox', async (t) => {
  const file = await privateFile(t)
  await assertSeen(await open(t, { transport: memory(), outbox: sqliteOutbox({ file }) }), file)
})

test('health: one file of transport and inbox is one reason', async (t) => {
  const file = await privateFile(t)
  const inbox = sqliteInbox({ file })
  await assertSeen(await open(t, { transport: sqlite({ file }), inbox }), file)
})

test('health: a database in memory has no file to lose', async (t) => {
  const db = new DatabaseSync(':memory:')
  const app = await open(t, { transport: sqlite({ db }), inbox: sqliteInbox({ db }) })
  assert.deepEqual(await app.health(), { ok: true, reasons: [] })
})
