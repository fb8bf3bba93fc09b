import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { systemClock } from '../../src/model/clock.ts'
import {
  type MigrateContext,
  migrateSqlite,
  printSqliteMigrations,
  type SqliteSchema,
} from '../../src/sql/sqlite-migrate.ts'
import { databaseFile } from './sqlite-harness.ts'

function schema(versions: number): SqliteSchema {
  const steps = Array.from({ length: versions }, (_, n) => `CREATE TABLE step_${n} (n INTEGER);`)
  return { component: 'queue', migrations: steps }
}

test('sqlite: an older process that waited for the migration of a newer one takes nothing back', async (t) => {
  const { file, dispose } = await databaseFile()
  const [older, newer] = [new DatabaseSync(file), new DatabaseSync(file)]
  t.after(async () => {
    for (const handle of [older, newer]) handle.close()
    await dispose()
  })
  const { signal } = new AbortController()
  const context: MigrateContext = { clock: systemClock(), signal, migrate: 'auto' }
  newer.exec('BEGIN IMMEDIATE')
  const waiting = migrateSqlite(older, schema(1), context)
  // It has looked, and found nothing yet.
  await new Promise((resolve) => setImmediate(resolve))
  newer.exec(printSqliteMigrations(schema(3)).replace('BEGIN IMMEDIATE;', ''))
  await assert.rejects(waiting, { code: 'MILLRACE_SCHEMA_TOO_NEW' })
  await migrateSqlite(newer, schema(3), { ...context, migrate: 'check' })
})
