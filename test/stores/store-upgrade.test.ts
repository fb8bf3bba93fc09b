import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { postgresStore, type Store, type StoreConnector, sqliteStore } from 'millrace/store'
import { systemClock } from '../../src/model/clock.ts'
import { migratePg } from '../../src/sql/pg-migrate.ts'
import { inSchema } from '../../src/sql/pg-name.ts'
import { pgPool } from '../../src/sql/pg-open.ts'
import { migrateSqlite } from '../../src/sql/sqlite-migrate.ts'
import { storeSchema as postgresSchema } from '../../src/stores/postgres/schema.ts'
import { storeSchema as sqliteSchema } from '../../src/stores/sqlite/schema.ts'
import { backendUrl } from '../backends.ts'
import { dropSchema, freshSchema } from '../transports/postgres-servers.ts'
import { connectStore } from './store-harness.ts'

const LEASE_MS = 60_000
const clock = systemClock()
const at = { clock, random: Math.random }
const { signal } = new AbortController()

/** Many instances start at once on what an older version has left, and all of them find it. */
async function upgraded(connector: StoreConnector, fence: bigint | undefined): Promise<void> {
  const stores = await Promise.all(Array.from({ length: 5 }, () => connectStore(connector)))
  const [store] = stores
  assert.ok(store)
  assert.equal(await store.counters.read('kept'), 7)
  const limits = { max: 1, maxPerKey: undefined }
  const ask = ({ slots }: Store, at: number) =>
    slots.acquire('pool', limits, [{ holder: `h${at}`, key: 'k' }], LEASE_MS)
  const answers = (await Promise.all(stores.map(ask))).flat()
  const held = answers.flatMap((one) => (one.as === 'held' ? [one.fence] : []))
  assert.equal(held.length, 1)
  assert.ok((held[0] ?? 0n) > (fence ?? 0n), 'fences go on where they were')
  for (const one of stores) await one.close()
}

test('A SQLite store of the version before slots keeps what it has, and has slots then.', async () => {
  const db = new DatabaseSync(':memory:')
  const first = { ...sqliteSchema, migrations: sqliteSchema.migrations.slice(0, 1) }
  await migrateSqlite(db, first, { clock, signal, migrate: 'auto' })
  const later = Date.now() + LEASE_MS
  db.prepare('INSERT INTO millrace_store_counter VALUES (?, ?, ?)').run('kept', 7, later)
  db.exec('UPDATE millrace_store_fence SET value = 40')
  await upgraded(sqliteStore({ db }), 40n)
  db.close()
})

const url = backendUrl('postgres 18')
if (url !== undefined) {
  test('A Postgres store of the version before slots keeps what it has, and has slots then; older instances go on beside it.', async (t) => {
    const schema = freshSchema()
    t.after(() => dropSchema(url, schema))
    const first = { ...postgresSchema, migrations: postgresSchema.migrations.slice(0, 1) }
    const pool = await pgPool({ url }, { clock })
    await migratePg(pool, schema, first, 'auto', at)
    const run = (sql: string) => pool.query(inSchema(sql, schema), [])
    await run(`INSERT INTO {schema}.store_counter VALUES ('kept', 7, now() + interval '1 hour')`)
    const [row] = await run(`SELECT nextval('{schema}.store_fence')::text AS fence`)
    await upgraded(postgresStore({ url, schema }), BigInt(String(row?.fence)))
    // As an instance does that starts with the code of before.
    await migratePg(pool, schema, first, 'check', at)
    await pool.close()
  })
}
