import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { quoteIdentifier } from '../../src/sql/pg-name.ts'
import { envelope, open, signal, take, until } from './postgres-bench.ts'
import { NO_SERVER, nodePool, postgresServers } from './postgres-servers.ts'

const servers = postgresServers()
if (servers.length === 0) test('claims on postgres', { skip: NO_SERVER }, () => {})

/** More than one sweep takes back. */
const MANY = 600

for (const { name, url } of servers) {
  const scene = async (t: TestContext) => {
    const bench = await open(url)
    const pool = nodePool(url, 2)
    t.after(async () => {
      await pool.end()
      await bench.dispose()
    })
    const { transport, schema } = bench
    const count = async (table: string, where = 'true'): Promise<number> => {
      const { rows } = await pool.query(
        `SELECT count(*)::int4 AS n FROM ${quoteIdentifier(schema)}.${table} WHERE ${where}`,
      )
      return rows[0].n
    }
    /** As if the holder had vanished long ago. */
    const endLeases = async (): Promise<void> => {
      await pool.query(`UPDATE ${quoteIdentifier(schema)}.claim SET expires_at = now()`)
    }
    const other = await bench.another()
    const from = await other.subscribe('q', { group: 'g', leaseMs: 60_000, maxInFlight: 1 })
    return { transport, schema, pool, count, endLeases, from }
  }
  const send = (ids: readonly string[]) => [ids.map((id) => envelope(id)), { signal }] as const

  test(`${name}: of a holder that vanished with more than one sweep takes back, all come back`, async (t) => {
    const { transport, count, endLeases, from } = await scene(t)
    await transport.send('q', ...send(Array.from({ length: MANY }, (_, at) => `m${at}`)))
    assert.equal((await take(transport, 'q', MANY)).length, MANY)
    await endLeases()
    let got = 0
    await until(async () => {
      const more = await from.receive({ max: 1, waitMs: 0, signal })
      got += more.length
      return (await count('message', 'state = 3')) + got === MANY
    })
    // The claims of those that are in hand again.
    assert.equal(await count('claim'), got)
  })

  test(`${name}: what somebody's transaction holds keeps nobody from what vanished beside it, and comes back when that ends`, async (t) => {
    const { transport, schema, pool, count, endLeases, from } = await scene(t)
    await transport.send('q', ...send(['held', 'free']))
    assert.equal((await take(transport, 'q', 2)).length, 2)
    const somebody = await pool.connect()
    await somebody.query('BEGIN')
    const messages = `${quoteIdentifier(schema)}.message`
    await somebody.query(`SELECT 1 FROM ${messages} WHERE id = 'held' FOR UPDATE`)
    await endLeases()
    const receive = async (waitMs: number): Promise<readonly string[]> => {
      const all = await from.receive({ max: 2, waitMs, signal })
      return all.map(({ envelope: { id } }) => id)
    }
    assert.deepEqual(await receive(10_000), ['free'])
    await somebody.query('ROLLBACK')
    somebody.release()
    assert.deepEqual(await receive(10_000), ['held'])
    assert.equal(await count('message', 'claim_id IS NULL'), 0)
  })

  test(`${name}: what another process is just taking back keeps nobody from the rest`, async (t) => {
    const { transport, schema, pool, endLeases, from } = await scene(t)
    await transport.send('q', ...send(['theirs', 'free']))
    for (const id of ['theirs', 'free']) {
      const [delivery] = await take(transport, 'q', 1)
      assert.equal(delivery?.envelope.id, id)
    }
    await endLeases()
    const sweeper = await pool.connect()
    await sweeper.query('BEGIN')
    const claims = `${quoteIdentifier(schema)}.claim`
    await sweeper.query(`SELECT 1 FROM ${claims} ORDER BY claim_id LIMIT 1 FOR UPDATE`)
    const [delivery] = await from.receive({ max: 1, waitMs: 5_000, signal })
    assert.equal(delivery?.envelope.id, 'free')
    await sweeper.query('ROLLBACK')
    sweeper.release()
  })

  test(`${name}: a claim whose messages were acked in transactions of effects is gone long before its lease`, async (t) => {
    const { transport, pool, count, from } = await scene(t)
    await transport.send('q', ...send(['a', 'b']))
    const held = await from.receive({ max: 2, waitMs: 5_000, signal })
    assert.equal(held.length, 2)
    const tx = await pool.connect()
    await tx.query('BEGIN')
    const mine = await transport.transaction?.(tx)
    assert.deepEqual(await mine?.ack('q', held), [{ ok: true }, { ok: true }])
    await tx.query('COMMIT')
    tx.release()
    assert.equal(await count('claim'), 1)
    assert.deepEqual(await from.receive({ max: 1, waitMs: 0, signal }), [])
    assert.equal(await count('claim'), 0)
  })

  test(`${name}: to renew what was received together writes one row, and no message`, async (t) => {
    const { transport, schema, pool, from } = await scene(t)
    await transport.send('q', ...send(['a', 'b', 'c']))
    const held = await from.receive({ max: 3, waitMs: 5_000, signal })
    assert.equal(held.length, 3)
    const versions = async (table: string): Promise<readonly unknown[]> => {
      const name = `${quoteIdentifier(schema)}.${table}`
      const { rows } = await pool.query(`SELECT xmin::text, ctid::text FROM ${name} ORDER BY ctid`)
      return rows
    }
    const [messages, claims] = [await versions('message'), await versions('claim')]
    assert.deepEqual(await from.renew?.(held, 60_000), [{ ok: true }, { ok: true }, { ok: true }])
    assert.deepEqual(await versions('message'), messages)
    const renewed = await versions('claim')
    assert.equal(renewed.length, 1)
    assert.notDeepEqual(renewed, claims)
  })
}
