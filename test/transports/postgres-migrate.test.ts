import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Clock, systemClock } from '../../src/model/clock.ts'
import { hasCode } from '../../src/model/errors.ts'
import { migratePg, type PgSchema, printMigrations } from '../../src/sql/pg-migrate.ts'
import { inSchema } from '../../src/sql/pg-name.ts'
import { pgPool } from '../../src/sql/pg-open.ts'
import { dropSchema, freshSchema, nodePool, postgresServers } from './postgres-servers.ts'
import { until } from './until.ts'

/** Of the first version: two tables. The second one changes both, the first table first. */
function component(version: 1 | 2): PgSchema {
  const made = ['sent', 'held'].map((table) => `CREATE TABLE {schema}.${table} (id integer)`)
  const changed = ['sent', 'held'].map((table) => `ALTER TABLE {schema}.${table} ADD note text`)
  const migrations = [{ statements: made }, { statements: changed }].slice(0, version)
  return { component: 'queue', migrations }
}

/** As `migratePg` takes it: processes of all versions must agree on it. */
const MIGRATION_LOCK = 'SELECT pg_advisory_xact_lock(7883951835720016741)'
const LOCK_NOT_AVAILABLE = '55P03'

for (const { name, url } of postgresServers()) {
  const scene = async (t: TestContext, clock: Clock = systemClock()) => {
    const schema = freshSchema()
    const users = nodePool(url)
    const own = await pgPool({ url }, { clock })
    const at = { clock, random: Math.random }
    const migrated = (version: 1 | 2) => migratePg(own, schema, component(version), 'auto', at)
    await migrated(1)
    const somebody = await users.connect()
    t.after(async () => {
      somebody.release(true)
      await Promise.all([own.close(), users.end()])
      await dropSchema(url, schema)
    })
    /** Whether a change waits for a lock on this table. */
    const waitsFor = async (table: string): Promise<boolean> => {
      const sql =
        'SELECT 1 FROM pg_locks WHERE NOT granted AND relation = $1::regclass AND mode = $2'
      const { rows } = await users.query(sql, [
        inSchema(`{schema}.${table}`, schema),
        'AccessExclusiveLock',
      ])
      return rows.length > 0
    }
    const insert = (table: string): string =>
      inSchema(`INSERT INTO {schema}.${table} VALUES (1)`, schema)
    return { users, somebody, migrated, waitsFor, insert, schema }
  }

  test(`${name}: a migration that somebody's open transaction keeps out stops nobody else, and is done when that ends.`, async (t) => {
    const { users, somebody, migrated, waitsFor, insert } = await scene(t)
    await somebody.query('BEGIN')
    await somebody.query(insert('sent'))
    const migrating = migrated(2)
    let sends = 0
    for (let waits = 0; waits < 2; waits += 1) {
      await until('a change that waits', () => waitsFor('sent'))
      // It waits behind the change, which gives way; in a minute it would be refused.
      await users.query(`SET statement_timeout = '10s'; ${insert('sent')}`)
      sends += 1
    }
    assert.equal(sends, 2)
    await somebody.query('COMMIT')
    await migrating
    const { rows } = await users.query(insert('sent').replace('(1)', "(1, 'noted') RETURNING note"))
    assert.deepEqual(rows, [{ note: 'noted' }])
  })

  test(`${name}: of a migration and a worker that wait for each other it is the migration that gives way, and comes again.`, async (t) => {
    const { somebody: worker, migrated, waitsFor, insert } = await scene(t)
    await worker.query('BEGIN')
    await worker.query(insert('held'))
    const migrating = migrated(2)
    await until('a change that waits', () => waitsFor('held'))
    // The change has this table already.
    await worker.query(insert('sent'))
    await worker.query('COMMIT')
    await migrating
  })

  test(`${name}: a migration that is kept out for a minute says by what, and has changed nothing.`, async (t) => {
    let passedMs = 0
    const system = systemClock()
    const clock: Clock = { ...system, now: () => system.now() + passedMs }
    const { users, somebody, migrated, waitsFor, insert } = await scene(t, clock)
    await somebody.query('BEGIN')
    await somebody.query(insert('held'))
    const migrating = migrated(2)
    await until('a change that waits', () => waitsFor('held'))
    passedMs = 60_000
    await assert.rejects(migrating, (error) => {
      assert.ok(hasCode(error, 'MILLRACE_UNAVAILABLE'))
      assert.match(String(error), /another transaction holds its tables; nothing was changed: end/)
      return true
    })
    await somebody.query('COMMIT')
    await users.query(insert('sent'))
    await migrated(2)
  })

  test(`${name}: printed steps wait for an instance that migrates, and give way to a transaction that somebody has open.`, async (t) => {
    const { users, somebody, migrated, insert, schema } = await scene(t)
    const printed = printMigrations(schema, component(2), 1)
    const apply = async (): Promise<void> => {
      const client = await users.connect()
      await client.query(printed).finally(() => client.release(true))
    }
    await somebody.query('BEGIN')
    await somebody.query(insert('held'))
    await assert.rejects(apply(), { code: LOCK_NOT_AVAILABLE })
    await somebody.query('COMMIT')
    await somebody.query(insert('sent'))
    await somebody.query('BEGIN')
    await somebody.query(MIGRATION_LOCK)
    const applying = apply()
    applying.catch(() => {})
    await until('the steps to wait', async () => {
      const sql = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
      return (await users.query(sql)).rows.length > 0
    })
    const { rows: before } = await users.query(insert('sent').replace('(1)', '(2) RETURNING *'))
    assert.deepEqual(before, [{ id: 2 }])
    await somebody.query('COMMIT')
    await applying
    const { rows } = await users.query(insert('sent').replace('(1)', '(3) RETURNING *'))
    assert.deepEqual(rows, [{ id: 3, note: null }])
    // What was printed says, too, which code may go on.
    await assert.rejects(migrated(1), { code: 'MILLRACE_SCHEMA_TOO_NEW' })
    await migrated(2)
  })
}
