import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import Database from 'better-sqlite3'
import { sqliteInbox } from 'millrace/inbox'
import { sqliteOutbox } from 'millrace/outbox'
import { sqlite } from 'millrace/sqlite'
import { sqliteStore } from 'millrace/store'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { openBeside, openSqlite } from '../../src/sql/sqlite-open.ts'
import { inboxContext } from './inbox-subjects.ts'
import { databaseFile } from './sqlite-harness.ts'

const { signal } = new AbortController()
const clock = systemClock()
const context = { ...inboxContext(), logger: silentLogger }

async function freshFile(t: TestContext): Promise<string> {
  const { file, dispose } = await databaseFile()
  t.after(dispose)
  return file
}

const makers = { sqlite, sqliteStore, sqliteInbox, sqliteOutbox } as const

for (const [name, make] of Object.entries(makers)) {
  test(`${name}: a commit waits for the disk unless something else is asked for, on a file and beside a handle`, async (t) => {
    const levels: string[] = []
    const { exec } = DatabaseSync.prototype
    t.mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
      if (sql.startsWith('PRAGMA synchronous')) levels.push(sql)
      exec.call(this, sql)
    })
    const db = new DatabaseSync(await freshFile(t))
    t.after(() => db.close())
    const file = await freshFile(t)
    const levelOf = async (options: object): Promise<string | undefined> => {
      levels.length = 0
      const opened = await Reflect.apply(make, undefined, [options]).connect(context)
      await opened.close()
      assert.equal(levels.length, 1)
      return levels[0]
    }
    for (const place of [{ file }, { db }]) {
      assert.equal(await levelOf(place), 'PRAGMA synchronous = FULL')
      assert.equal(await levelOf({ ...place, synchronous: 'full' }), 'PRAGMA synchronous = FULL')
      const less = await levelOf({ ...place, synchronous: 'normal' })
      assert.equal(less, 'PRAGMA synchronous = NORMAL')
    }
  })
}

test('sqlite: the store that a transport brings is as durable as the transport', async (t) => {
  const file = await freshFile(t)
  const db = new DatabaseSync(await freshFile(t))
  t.after(() => db.close())
  const levels: string[] = []
  const { exec } = DatabaseSync.prototype
  t.mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
    if (sql.startsWith('PRAGMA synchronous')) levels.push(sql)
    exec.call(this, sql)
  })
  for (const [synchronous, level] of [
    ['full', 'FULL'],
    ['normal', 'NORMAL'],
  ] as const) {
    for (const place of [{ file }, { db }]) {
      levels.length = 0
      const store = await sqlite({ ...place, synchronous })
        .ownStore()
        .connect(context)
      await store.close()
      assert.deepEqual(levels, [`PRAGMA synchronous = ${level}`])
    }
  }
})

test('every connection of ours never blocks for a lock, writes ahead and cuts its log back, in each library', async (t) => {
  const file = await freshFile(t)
  const options = { clock, signal, synchronous: 'full' } as const
  const given = new Database(await freshFile(t))
  t.after(() => given.close())
  const handles = [await openSqlite(file, options), await openBeside(given, given.name, options)]
  for (const handle of handles) {
    const pragma = (name: string): unknown =>
      Object.values(handle.prepare(`PRAGMA ${name}`).get() as object)[0]
    const names = ['journal_mode', 'synchronous', 'busy_timeout', 'journal_size_limit']
    assert.deepEqual(names.map(pragma), ['wal', 2, 0, 67_108_864])
    handle.close()
  }
})
