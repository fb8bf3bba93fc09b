import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import Database from 'better-sqlite3'
import { storeConformance } from 'millrace/conformance'
import { sqliteStore } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { callerClockHarness, connectStore } from './store-harness.ts'

const folder = await mkdtemp(join(tmpdir(), 'millrace-store-'))
after(() => rm(folder, { recursive: true, force: true }))

const memory = new DatabaseSync(':memory:')
const better = new Database(join(folder, 'better.db'))
const subjects = [
  callerClockHarness('sqlite store (file)', sqliteStore({ file: join(folder, 'node.db') })),
  callerClockHarness('sqlite store (:memory:)', sqliteStore({ db: memory })),
  callerClockHarness('sqlite store (better-sqlite3)', sqliteStore({ db: better })),
]
after(() => {
  memory.close()
  better.close()
})
for (const harness of subjects)
  await storeConformance({ test, harness, depth: kitDepth, onResult: recordResult })

test('a bucket of a SQLite store holds what it held when the clock is set back, and its row goes when it is full', async () => {
  const db = new DatabaseSync(':memory:')
  const time = virtualClock()
  let setMs = 0
  const store = await connectStore(sqliteStore({ db }), { ...time, now: () => time.now() + setMs })
  const rate = { capacity: 10, refillPerSecond: 1 }
  assert.equal((await store.buckets.take('b', rate, 4)).taken, true)
  setMs = -3_600_000
  assert.equal((await store.buckets.take('b', rate, 6)).taken, true)
  assert.equal((await store.buckets.take('b', rate, 6)).taken, false)
  assert.equal(await store.prune(10), 0)
  await time.advance(10_000)
  assert.equal(await store.prune(10), 1)
  await store.close()
  db.close()
})

test('a SQLite store that is closed has given its file back', async () => {
  const file = join(folder, 'closed.db')
  const store = await connectStore(sqliteStore({ file }))
  await store.counters.add('c', 1, 60_000)
  assert.equal(existsSync(`${file}-wal`), true)
  await store.close()
  // The last connection to a file takes its log away.
  assert.equal(existsSync(`${file}-wal`), false)
})

test('what is wrong with the options of a SQLite store is said at once', () => {
  const text: { file: string } = JSON.parse('{"file":"","db":1,"nobody":1,"synchronous":"maybe"}')
  assert.throws(() => sqliteStore(text), {
    code: 'MILLRACE_INVALID_OPTIONS',
    message: /sqliteStore: .*nobody.*file or db.*synchronous/,
  })
  assert.match(sqliteStore({ file: 'x' }).migrationSql?.() ?? '', /millrace_store_key/)
})
