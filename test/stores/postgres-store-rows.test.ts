import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { postgresStore, type Store } from 'millrace/store'
import { freshHistory } from '../../src/model/history.ts'
import { inSchema } from '../../src/sql/pg-name.ts'
import {
  dropSchema,
  freshSchema,
  nodePool,
  postgresServers,
} from '../transports/postgres-servers.ts'
import { until } from '../transports/until.ts'
import { connectStore } from './store-harness.ts'

interface Scene {
  readonly store: Store
  /** Runs a statement beside the store, as time or another process would. */
  run(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>
}

async function scene(t: TestContext, url: string): Promise<Scene> {
  const schema = freshSchema()
  const store = await connectStore(postgresStore({ url, schema }))
  const pool = nodePool(url, 1)
  t.after(async () => {
    await store.close()
    await pool.end()
    await dropSchema(url, schema)
  })
  return { store, run: async (sql) => (await pool.query(inSchema(sql, schema))).rows }
}

for (const { name, url } of postgresServers()) {
  test(`${name}: a letter that is put again is later than before, also when the server's clock was set back`, async (t) => {
    const { store, run } = await scene(t, url)
    const letter = {
      envelope: { id: 'm', body: new Uint8Array(), headers: {}, priority: 0 },
      queue: 'q',
      owner: 'team',
      errorClass: 'permanent',
      reason: 'no',
      history: freshHistory,
      sentAt: 0,
    } as const
    await store.shelf.put([letter])
    await run(`UPDATE {schema}.store_dead_letter SET dead_at = dead_at + interval '1 hour'`)
    const before = await store.shelf.get('q', 'm')
    assert.ok(before)
    await store.shelf.put([letter])
    assert.equal((await store.shelf.get('q', 'm'))?.deadAt, before.deadAt + 1)
    // A redrive that began before the second death leaves it there.
    await store.shelf.redriven('q', [{ id: 'm', deadAt: before.deadAt }], {
      actor: 'a',
      reason: 'r',
    })
    assert.equal(await store.shelf.count('q', {}), 1)
  })

  test(`${name}: the row of a lease stays for a day after its end, so that a fence that was drawn before it and is written late finds it`, async (t) => {
    const { store, run } = await scene(t, url)
    const lease = await store.leases.acquire('n', 'one', 60_000)
    assert.ok(lease)
    await store.leases.release('n', lease)
    assert.equal(await store.prune(10), 0)
    assert.equal((await run('SELECT 1 FROM {schema}.store_lease')).length, 1)
    await run(`UPDATE {schema}.store_lease SET expires_at = expires_at - interval '25 hours'`)
    assert.equal(await store.prune(10), 1)
    assert.equal((await run('SELECT 1 FROM {schema}.store_lease')).length, 0)
  })

  test(`${name}: a bucket holds what it held when the server's clock is set back, and its row goes when it is full`, async (t) => {
    const { store, run } = await scene(t, url)
    const rate = { capacity: 10, refillPerSecond: 1 }
    assert.equal((await store.buckets.take('b', rate, 4)).taken, true)
    await run(
      `UPDATE {schema}.store_bucket SET at = at + interval '1 hour', full_at = full_at + interval '1 hour'`,
    )
    assert.equal((await store.buckets.take('b', rate, 6)).taken, true)
    assert.equal((await store.buckets.take('b', rate, 6)).taken, false)
    assert.equal(await store.prune(10), 0)
    await run(`UPDATE {schema}.store_bucket SET full_at = now()`)
    assert.equal(await store.prune(10), 1, 'a full one needs no row')
  })

  test(`${name}: what another transaction has locked keeps nobody from taking and pruning the rest`, async (t) => {
    const { store, run } = await scene(t, url)
    const envelope = { body: new Uint8Array(), headers: {}, priority: 0 }
    const due = ['a', 'b'].map((id) => ({ envelope: { ...envelope, id }, delayMs: 0 }))
    await store.delayed.put('q', due)
    const key = { kind: 'dedupe', fingerprint: undefined, windowMs: 0 } as const
    await store.keys.confirm(
      'q',
      ['a', 'b'].map((id) => ({ id, keys: [{ ...key, key: id }] })),
    )
    const entry = { history: freshHistory, runner: undefined }
    await store.journal.write(
      'q',
      ['a', 'b'].map((id) => ({ id, ...entry })),
      0,
    )
    await run('BEGIN')
    for (const [table, column] of [
      ['delayed', 'id'],
      ['key', 'key'],
      ['journal', 'id'],
    ]) {
      await run(`SELECT 1 FROM {schema}.store_${table} WHERE ${column} = 'a' FOR UPDATE`)
    }
    const taken = await store.delayed.take('q', { max: 2, leaseMs: 60_000 })
    assert.deepEqual(
      taken.map((one) => one.envelope.id),
      ['b'],
    )
    assert.equal(await store.prune(10), 2)
    await run('COMMIT')
    assert.equal(await store.prune(10), 2)
  })

  test(`${name}: the first slots of a pool, asked for by many at once, are no more than its limit`, async (t) => {
    const { store, run } = await scene(t, url)
    for (let round = 0; round < 5; round += 1) {
      const pool = `p${round}`
      // As the first of them does, which the others wait for.
      await run('BEGIN')
      await run(`INSERT INTO {schema}.store_slot_pool VALUES ('${pool}')`)
      const ask = (n: number) =>
        store.slots.acquire(
          pool,
          { max: 1, maxPerKey: undefined },
          [{ holder: `h${n}`, key: undefined }],
          60_000,
        )
      const asked = Array.from({ length: 8 }, (_, n) => ask(n))
      await until('all of them to wait', async () => {
        const [row] = await run(
          'SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()',
        )
        return Number(row?.n) >= 8
      })
      await run('COMMIT')
      const answers = (await Promise.all(asked)).flat()
      assert.equal(answers.filter(({ as }) => as === 'held').length, 1)
    }
  })
}
