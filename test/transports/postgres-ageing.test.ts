import assert from 'node:assert/strict'
import { test } from 'node:test'
import { quoteIdentifier } from '../../src/sql/pg-name.ts'
import { statementsIn } from '../../src/transports/postgres/store.ts'
import { envelope, open, signal } from './postgres-bench.ts'
import { NO_SERVER, nodePool, postgresServers } from './postgres-servers.ts'

const servers = postgresServers()
if (servers.length === 0) test('postgres ageing', { skip: NO_SERVER }, () => {})

for (const { name, url } of servers) {
  test(`${name}: a claim from several priorities reads what it takes, however long their lines`, async () => {
    const bench = await open(url)
    const { schema } = bench
    const pool = nodePool(url, 1)
    const table = `${quoteIdentifier(schema)}.message`
    await pool.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`)
    // Each priority is as old as it is low, so that a claim changes its line all the time.
    await pool.query(
      `INSERT INTO ${table} (queue_id, id, state, priority, ready_at, sent_at, body)
       SELECT 1, n::text, 0, n % 3, at, at, ''
       FROM generate_series(1, 60000) AS n, LATERAL (
         SELECT now() - interval '1 hour' + (n + 60000 * (n % 3)) * interval '1 ms' AS at) AS moment`,
    )
    await pool.query(`VACUUM ${table}`)
    const client = await pool.connect()
    await client.query('BEGIN')
    const { rows: claimed } = await client.query(statementsIn(schema).CLAIM, [1, 90, 30_000, 't'])
    assert.deepEqual(
      claimed.sort((a, b) => a.turn - b.turn).map(({ id }) => id),
      Array.from({ length: 90 }, (_, at) => String(at + 1)),
    )
    const { rows } = await client.query(
      `SELECT (idx_tup_fetch + seq_tup_read)::int4 AS n FROM pg_stat_xact_user_tables WHERE relid = '${table}'::regclass`,
    )
    // Each change of the line looks ahead by what is still wanted, at most.
    assert.ok(rows[0].n < 10_000, `a claim of 90 read ${rows[0].n} rows`)
    await client.query('ROLLBACK')
    client.release()
    await pool.end()
    await bench.dispose()
  })

  test(`${name}: who claims while another takes all that is old of a line goes on with the others`, async () => {
    const bench = await open(url)
    const pool = nodePool(url, 2)
    const table = `${quoteIdentifier(bench.schema)}.message`
    const sent = [envelope('low-1'), envelope('low-2'), envelope('high', { priority: 1 })]
    await bench.transport.send('q', sent, { signal })
    await pool.query(`UPDATE ${table} SET ready_at = now() - interval '1 hour' WHERE priority = 0`)
    const claim = statementsIn(bench.schema).CLAIM
    const [first, second] = [await pool.connect(), await pool.connect()]
    await first.query('BEGIN')
    const both = await first.query(claim, [1, 2, 30_000, 'a'])
    assert.deepEqual(both.rows.map(({ id }) => id).sort(), ['low-1', 'low-2'])
    const rest = await second.query(claim, [1, 10, 30_000, 'b'])
    assert.deepEqual(
      rest.rows.map(({ id }) => id),
      ['high'],
    )
    await first.query('ROLLBACK')
    first.release()
    second.release()
    await pool.end()
    await bench.dispose()
  })

  test(`${name}: an instance of older code claims in the same order`, async () => {
    const bench = await open(url)
    const pool = nodePool(url, 1)
    const schema = quoteIdentifier(bench.schema)
    const sent = [envelope('new', { priority: 1 }), envelope('old')]
    await bench.transport.send('q', sent, { signal })
    await pool.query(
      `UPDATE ${schema}.message SET ready_at = now() - interval '1 hour' WHERE id = 'old'`,
    )
    const columns =
      'seq, claim_id, id, priority, sent_at, deliveries, alone, counted, crashes, redrives, throttled_since, idempotency_key, ordering_key, headers, records, body'
    const { rows } = await pool.query(
      `SELECT ${columns} FROM ${schema}.claim_messages(1, 1, 30000::float8, 'older')`,
    )
    assert.deepEqual(
      rows.map(({ id, deliveries }) => [id, deliveries]),
      [['old', 1]],
    )
    await pool.end()
    await bench.dispose()
  })
}
