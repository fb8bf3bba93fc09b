import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { postgres } from 'millrace/postgres'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { pgPool } from '../../src/sql/pg-open.ts'
import type { PgPool } from '../../src/sql/pg-pool.ts'
import { openAnnouncer } from '../../src/transports/postgres/announcer.ts'
import { envelope, open, signal } from './postgres-bench.ts'
import { NO_SERVER, nodePool, postgresServers } from './postgres-servers.ts'
import { until } from './until.ts'

const servers = postgresServers()
if (servers.length === 0) test('postgres news', { skip: NO_SERVER }, () => {})

const clock = systemClock()
/** Longer than the test: only news ends a wait. */
const LONG_MS = 60_000

/** Two transports on one schema, and a look at the sessions of the second one, which only news wakes. */
async function watched(t: TestContext, url: string) {
  const { transport: other, schema, dispose } = await open(url)
  const admin = nodePool(url, 1)
  t.after(async () => {
    await admin.end()
    await dispose()
  })
  const named = new URL(url)
  named.searchParams.set('application_name', schema)
  const transport = await postgres({ url: named.href, schema, pollMs: LONG_MS }).connect({
    ...{ signal, clock, random: Math.random, logger: silentLogger },
    migrate: 'check',
  })
  t.after(() => transport.close())
  return { other, transport, schema, admin }
}

for (const { name, url } of servers) {
  test(`${name}: a redrive by another process wakes who waits for a message`, {
    timeout: 20_000,
  }, async (t) => {
    const { transport: other, schema, dispose } = await open(url)
    t.after(dispose)
    const transport = await postgres({ url, schema, pollMs: LONG_MS }).connect({
      ...{ signal, clock: systemClock(), random: Math.random, logger: silentLogger },
      migrate: 'check',
    })
    t.after(() => transport.close())
    const from = await transport.subscribe('q', { group: 'g', leaseMs: LONG_MS, maxInFlight: 1 })
    await transport.send('q', [envelope('m1')], { signal })
    const [delivery] = await from.receive({ max: 1, waitMs: LONG_MS, signal })
    assert.ok(delivery)
    await from.settle([{ as: 'dead', delivery, errorClass: 'permanent', reason: 'no' }])
    const next = from.receive({ max: 1, waitMs: LONG_MS, signal })
    await new Promise((resolve) => setImmediate(resolve))
    const note = { actor: 'someone', reason: 'test' }
    assert.deepEqual(await other.shelf?.redrive('q', ['m1'], note), ['m1'])
    assert.deepEqual(
      (await next).map(({ envelope: { id } }) => id),
      ['m1'],
    )
  })

  test(`${name}: what a closing worker gives back wakes who waits in another process`, {
    timeout: 20_000,
  }, async (t) => {
    const { other, transport, schema, admin } = await watched(t, url)
    const options = { group: 'g', leaseMs: LONG_MS, maxInFlight: 1 }
    const [closing, from] = [
      await other.subscribe('q', options),
      await transport.subscribe('q', options),
    ]
    const ids = async (received: ReturnType<typeof from.receive>): Promise<readonly string[]> =>
      (await received).map(({ envelope: { id } }) => id)
    await other.send('q', [envelope('m1')], { signal })
    assert.deepEqual(await ids(closing.receive({ max: 1, waitMs: LONG_MS, signal })), ['m1'])
    const first = from.receive({ max: 1, waitMs: LONG_MS, signal })
    const listens = `SELECT 1 FROM pg_stat_activity WHERE application_name = $1 AND query LIKE 'LISTEN%'`
    await until('a session that listens', async () => {
      return (await admin.query(listens, [schema])).rows.length === 1
    })
    // Who hears of this listens from now on.
    await other.send('q', [envelope('m0')], { signal })
    assert.deepEqual(await ids(first), ['m0'])
    const next = from.receive({ max: 1, waitMs: LONG_MS, signal })
    const busy = `SELECT 1 FROM pg_stat_activity WHERE application_name = $1
      AND (state <> 'idle' OR state_change > now() - interval '200 ms')`
    await until('it to have looked and to wait', async () => {
      return (await admin.query(busy, [schema])).rows.length === 0
    })
    await closing.close()
    assert.deepEqual(await ids(next), ['m1'])
  })

  test(`${name}: what was sent while nobody listened is seen as soon as somebody listens again`, {
    timeout: 20_000,
  }, async (t) => {
    const { other, transport, schema, admin } = await watched(t, url)
    const from = await transport.subscribe('q', { group: 'g', leaseMs: LONG_MS, maxInFlight: 1 })
    const next = from.receive({ max: 1, waitMs: LONG_MS, signal })
    const ends = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE application_name = $1 AND query LIKE 'LISTEN%'`
    await until('a session that listens, and its end', async () => {
      const { rows } = await admin.query(ends, [schema])
      return rows.length === 1
    })
    await other.send('q', [envelope('m1')], { signal })
    assert.deepEqual(
      (await next).map(({ envelope: { id } }) => id),
      ['m1'],
    )
  })

  test(`${name}: an announcement that fails stops none of those after it`, async (t) => {
    const pool = await pgPool({ url }, { clock })
    t.after(() => pool.close())
    const failed: unknown[] = []
    const watched: PgPool = {
      ...pool,
      query: async (sql, params, call) => {
        try {
          return await pool.query(sql, params, call)
        } catch (error) {
          failed.push(error)
          throw error
        }
      },
    }
    // Postgres takes 63 bytes.
    const announcer = openAnnouncer(watched, 'c'.repeat(100), clock)
    announcer.announce(1)
    await until('the first to fail', () => failed.length === 1)
    announcer.announce(2)
    await until('the second to fail', () => failed.length === 2)
    announcer.close()
  })
}
