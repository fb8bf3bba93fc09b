import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import Database from 'better-sqlite3'
import { storeConformance } from 'millrace/conformance'
import { sqliteStore } from 'millrace/store'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { callerClockHarness } from './store-harness.ts'

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

test('what is wrong with the options of a SQLite store is said at once', () => {
  const text: { file: string } = JSON.parse('{"file":"","db":1,"nobody":1,"synchronous":"maybe"}')
  assert.throws(() => sqliteStore(text), {
    code: 'MILLRACE_INVALID_OPTIONS',
    message: /sqliteStore: .*nobody.*file or db.*synchronous/,
  })
  assert.match(sqliteStore({ file: 'x' }).migrationSql?.() ?? '', /millrace_store_key/)
})
