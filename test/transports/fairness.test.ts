import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import type { Harness } from 'millrace/conformance'
import { quoteIdentifier } from '../../src/sql/pg-name.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { statementsIn } from '../../src/transports/postgres/store.ts'
import * as fairStatements from '../../src/transports/sqlite/fair-statements.ts'
import { queueSchema } from '../../src/transports/sqlite/schema.ts'
import { byDepth } from '../depth.ts'
import { memoryHarness } from './memory-harness.ts'
import { open } from './postgres-bench.ts'
import { postgresHarness } from './postgres-harness.ts'
import { nodePool, postgresServers } from './postgres-servers.ts'
import { redisHarness } from './redis-harness.ts'
import { redisServers } from './redis-servers.ts'
import { nodeFileHarness } from './sqlite-harness.ts'

const { signal } = new AbortController()
const CROWD = byDepth({ quick: 10_000, full: 100_000, long: 1_000_000 })
const BATCH = 10_000
const servers = postgresServers()

const harnesses: readonly (readonly [string, () => Harness | Promise<Harness>])[] = [
  ['memory', memoryHarness],
  ['sqlite', nodeFileHarness],
  ...servers.map(
    (server) => [server.name, () => postgresHarness({ server, client: 'pg' })] as const,
  ),
  ...redisServers().map(
    ({ name, url }) => [name, () => redisHarness({ name, address: { url } })] as const,
  ),
]

function shared(id: string, fairKey: string): Parameters<Transport['send']>[1][number] {
  return { id, fairKey, body: new Uint8Array(), headers: {}, priority: 0 }
}

for (const [name, openHarness] of harnesses) {
  test(`${name}: one message of a tenant is the third at most beside ${CROWD} of another`, async () => {
    const harness = await openHarness()
    const transport = await harness.connect()
    const queue = await harness.freshQueue()
    for (let from = 0; from < CROWD; from += BATCH) {
      const batch = Array.from({ length: BATCH }, (_, n) => shared(`crowd-${from + n}`, 'crowd'))
      await transport.send(queue, batch, { signal })
    }
    const options = { group: 'g', leaseMs: 600_000, maxInFlight: 1_000 }
    const subscription = await transport.subscribe(queue, options)
    const arrived: string[] = []
    const take = async (max: number): Promise<void> => {
      const some = await subscription.receive({ max, waitMs: 5_000, signal })
      arrived.push(...some.map(({ envelope }) => envelope.id))
    }
    await take(1_000)
    for (const id of ['single-1', 'single-2']) {
      await transport.send(queue, [shared(id, 'single')], { signal })
      arrived.length = 0
      while (arrived.length < 3) await take(1)
      assert.ok(arrived.includes(id), `${arrived} has ${id}`)
    }
    assert.equal((await transport.browse?.gauge(queue))?.depth, CROWD - 1_004)
    await subscription.close()
    await transport.close()
    await harness.dispose()
  })
}

test('sqlite: every statement of fairness walks an index, and sorts nothing', () => {
  const db = new DatabaseSync(':memory:')
  for (const migration of queueSchema.migrations) db.exec(migration)
  for (const [name, sql] of Object.entries(fairStatements)) {
    const values = new Array(sql.split('?').length - 1).fill(1)
    const plan = db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...values)
      .map(({ detail }) => String(detail))
      .join('; ')
    assert.match(plan, /USING (COVERING )?INDEX|USING INTEGER PRIMARY KEY/, `${name}: ${plan}`)
    assert.doesNotMatch(plan, /SCAN millrace_message|TEMP B-TREE/, `${name}: ${plan}`)
  }
  db.close()
})

for (const { name, url } of servers) {
  test(`${name}: a claim and a send among fair keys read what they take, whatever the statistics say`, async () => {
    const bench = await open(url)
    const { schema } = bench
    const pool = nodePool(url, 1)
    const table = `${quoteIdentifier(schema)}.message`
    // Vacuumed and never analysed, as a queue is that was empty a minute ago.
    await pool.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`)
    await pool.query(
      `INSERT INTO ${table} (queue_id, id, state, priority, ready_at, sent_at, body, fair_key, place)
       SELECT 1, n::text, -1, n % 2, now(), now(), '', 'tenant ' || n % 10, n FROM generate_series(1, 60000) AS n`,
    )
    await pool.query(`VACUUM ${table}`)
    const client = await pool.connect()
    const read = async (): Promise<number> => {
      const { rows } = await client.query(
        `SELECT (idx_tup_fetch + seq_tup_read)::int4 AS n FROM pg_stat_xact_user_tables WHERE relid = '${table}'::regclass`,
      )
      return rows[0].n
    }
    const reads = async (work: () => Promise<unknown>): Promise<number> => {
      await client.query('BEGIN')
      const before = await read()
      await work()
      const after = await read()
      await client.query('ROLLBACK')
      return after - before
    }
    const { CLAIM } = statementsIn(schema)
    const claimed = await reads(() => client.query(CLAIM, [1, 100, 30_000, 'test']))
    const sent = await reads(() =>
      client.query(
        `INSERT INTO ${table} (queue_id, id, state, priority, ready_at, sent_at, body, fair_key)
         VALUES (1, 'new', 0, 1, now(), now(), '', 'tenant 3')`,
      ),
    )
    client.release()
    await pool.end()
    await bench.dispose()
    assert.ok(claimed < 1_000, `a claim of 100 read ${claimed} rows`)
    assert.ok(sent < 10, `a send read ${sent} rows`)
  })
}
