import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../src/model/clock.ts'
import { pgPool } from '../../src/sql/pg-open.ts'
import { NO_SERVER, nodePool, pgBouncer, postgresServers } from './postgres-servers.ts'

const clock = systemClock()
const servers = postgresServers()
const bouncer = pgBouncer()
if (servers.length === 0) test('prepared statements', { skip: NO_SERVER }, () => {})

const PREPARED = `SELECT count(*)::int4 AS n FROM pg_prepared_statements WHERE name LIKE 'millrace_%'`

for (const { name, url } of servers) {
  test(`${name}: on a session of our own, statements are prepared once`, async () => {
    const own = nodePool(url, 1)
    const pool = await pgPool({ pool: own }, { clock })
    for (let i = 0; i < 3; i++) await pool.query('SELECT 1 AS one', [])
    const [row] = await pool.query(PREPARED, [])
    assert.equal(row?.n, 2, 'the one that was asked three times, and this one')
    await pool.close()
    await own.end()
  })

  test(`${name}: statements that somebody removed from the session are done without`, async () => {
    const own = nodePool(url, 1)
    const pool = await pgPool({ pool: own }, { clock })
    await pool.query('SELECT 1 AS one', [])
    await own.query('DISCARD ALL')
    await pool.query('SELECT 1 AS one', []).catch(() => undefined)
    const [row] = await pool.query('SELECT 1 AS one', [])
    assert.equal(row?.one, 1)
    await pool.close()
    await own.end()
  })
}

if (bouncer !== undefined) {
  test('behind PgBouncer in transaction mode nothing is prepared', async () => {
    const own = nodePool(bouncer.url, 1)
    const pool = await pgPool({ pool: own }, { clock })
    for (let i = 0; i < 3; i++) await pool.query('SELECT 1 AS one', [])
    const [row] = await pool.query(PREPARED, [])
    assert.equal(row?.n, 0)
    await pool.close()
    await own.end()
  })
}
