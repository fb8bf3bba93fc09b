import assert from 'node:assert/strict'
import { test } from 'node:test'
import { postgres } from 'millrace/postgres'
import pg from 'pg'
import { hasCode } from '../../src/model/errors.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { pgExecutor } from '../../src/sql/pg-executor.ts'
import { quoteIdentifier } from '../../src/sql/pg-name.ts'
import { statementsIn } from '../../src/transports/postgres/store.ts'
import { envelope, open, signal, take, until } from './postgres-bench.ts'
import {
  freshSchema,
  jsPool,
  NO_SERVER,
  nodePool,
  pgBouncer,
  postgresServers,
} from './postgres-servers.ts'

const servers = postgresServers()
if (servers.length === 0) test('postgres details', { skip: NO_SERVER }, () => {})

test('every wrong option is named at once', () => {
  const wrong = { url: 'localhost', schema: '', pollMs: 1, listen: 1, durable: true }
  assert.throws(
    () => Reflect.apply(postgres, undefined, [wrong]),
    (error) =>
      hasCode(error, 'MILLRACE_INVALID_OPTIONS') &&
      /durable.*url.*listen.*pollMs|durable/.test(String(error)) &&
      /pollMs: expected a number from 10 to 60000, got 1/.test(String(error)),
  )
  for (const options of [
    {},
    { pool: {} },
    { url: 'a', pool: {} },
    { url: 'postgres://x', schema: 'pg_x' },
  ]) {
    assert.throws(() => Reflect.apply(postgres, undefined, [options]), /expected/)
  }
})

for (const { name, url } of servers) {
  test(`${name}: SQL in names, ids, keys, headers, reasons and cursors is only text`, async () => {
    const evil = `'"; DROP TABLE message; --%_\\ $1 {schema}`
    const id = `'";DROP/**/TABLE/**/message;--%_\\`
    const bench = await open(url, { queue: evil })
    const { transport } = bench
    const remember = [
      { kind: 'idempotency', key: evil, fingerprint: evil, windowMs: 60_000 },
      { kind: 'dedupe', key: evil, fingerprint: undefined, windowMs: 60_000 },
    ] as const
    const headers = { [evil]: evil, nul: 'a\0b', lone: 'a\ud800b' }
    const sent = envelope(id, { headers, idempotencyKey: evil, orderingKey: evil, remember })
    assert.deepEqual(await transport.send(evil, [sent], { signal }), [
      { ok: true, id, duplicate: false },
    ])
    const [delivery] = await take(transport, evil, 1)
    assert.ok(delivery)
    assert.deepEqual({ ...delivery.envelope.headers }, headers)
    assert.equal(delivery.envelope.idempotencyKey, evil)
    const subscription = await transport.subscribe(evil, {
      group: evil,
      leaseMs: 500,
      maxInFlight: 1,
    })
    const attempt = { at: 1, errorClass: 'permanent', code: evil, message: `${evil}\0` } as const
    const dead = {
      as: 'dead',
      delivery,
      reason: `${evil}\0`,
      errorClass: 'permanent',
      attempt,
    } as const
    assert.deepEqual(await subscription.settle([dead]), [{ ok: true }])
    const { shelf } = transport
    assert.ok(shelf)
    const letter = await shelf.get(evil, id)
    assert.equal(letter?.reason, `${evil}\ufffd`)
    assert.equal(letter?.history.records[0]?.message, `${evil}\0`)
    assert.deepEqual(await shelf.redrive(evil, [evil, id, 'a\0'], { actor: evil, reason: evil }), [
      id,
    ])
    assert.equal((await shelf.audit(evil, 5))[0]?.actor, evil)
    await bench.dispose()
  })

  test(`${name}: keys that Postgres would refuse are refused item by item`, async () => {
    const bench = await open(url)
    const key = (text: string) => ({
      remember: [{ kind: 'dedupe', key: text, fingerprint: undefined, windowMs: 1_000 }] as const,
    })
    const batch = [
      envelope('good'),
      envelope('nul', key('a\0b')),
      envelope('lone', key('a\ud800')),
      envelope('long', key('k'.repeat(3_000))),
      envelope('far', { readyAt: 1e17 }),
      envelope('past', { readyAt: -1e17 }),
      envelope('spaces in an id'),
    ]
    const sent = await bench.transport.send('q', batch, { signal })
    assert.deepEqual(
      sent.map((outcome) => (outcome.ok ? 'ok' : outcome.fault.code)),
      ['ok', 'invalid', 'invalid', 'invalid', 'invalid', 'ok', 'invalid'],
    )
    await bench.dispose()
  })

  test(`${name}: of two transactions with one key the second stores when the first rolls back`, async () => {
    for (const kind of ['pg', 'postgres.js'] as const) {
      const bench = await open(url)
      const { transport } = bench
      const remember = [
        { kind: 'idempotency', key: 'k', fingerprint: 'f', windowMs: 60_000 },
      ] as const
      const hold = Promise.withResolvers<void>()
      const inside = Promise.withResolvers<void>()
      const first = inTransaction(kind, url, async (tx) => {
        const mine = await transport.transaction?.(tx)
        const [sent] = (await mine?.send('q', [envelope('first', { remember })])) ?? []
        assert.equal(sent?.ok && !sent.duplicate, true)
        inside.resolve()
        await hold.promise
        throw new Error('changed my mind')
      })
      const failed = assert.rejects(first, /changed my mind/)
      await inside.promise
      const second = transport.send('q', [envelope('second', { remember })], { signal })
      await until(async () => (await waiters(url, bench.schema)) > 0)
      hold.resolve()
      await failed
      assert.deepEqual(await second, [{ ok: true, id: 'second', duplicate: false }])
      await bench.dispose()
    }
  })

  test(`${name}: a batch takes its keys in one order for all, whatever the order of its items`, async () => {
    const bench = await open(url)
    const { transport } = bench
    const keyed = (id: string, key: string) =>
      envelope(id, {
        remember: [{ kind: 'dedupe', key, fingerprint: undefined, windowMs: 60_000 }],
      })
    const hold = Promise.withResolvers<void>()
    const inside = Promise.withResolvers<void>()
    const holder = inTransaction('pg', url, async (tx) => {
      const mine = await transport.transaction?.(tx)
      await mine?.send('q', [keyed('holder', 'a')])
      inside.resolve()
      await hold.promise
    })
    await inside.promise
    const batch = transport.send('q', [keyed('second', 'c'), keyed('first', 'a')], { signal })
    await until(async () => (await waiters(url, bench.schema)) > 0)
    // It waits for 'a' and has not taken 'c' yet: who takes them the other way round could not wait for it in a circle.
    const soon = AbortSignal.timeout(20_000)
    const [free] = await transport.send('q', [keyed('free', 'c')], { signal: soon })
    assert.deepEqual(free, { ok: true, id: 'free', duplicate: false })
    hold.resolve()
    await holder
    assert.deepEqual(await batch, [
      { ok: true, id: 'free', duplicate: true },
      { ok: true, id: 'holder', duplicate: true },
    ])
    await bench.dispose()
  })

  test(`${name}: a pool whose last connection holds the transaction is enough to send in it`, async () => {
    const pool = nodePool(url, 1)
    const bench = await open(url, { address: { pool }, listen: false })
    const tx = await pool.connect()
    await tx.query('BEGIN')
    const mine = await bench.transport.transaction?.(tx)
    const [sent] = (await mine?.send('q', [envelope('a')])) ?? []
    assert.equal(sent?.ok, true)
    await tx.query('COMMIT')
    tx.release()
    assert.equal((await take(bench.transport, 'q', 1)).length, 1)
    await bench.dispose()
    await pool.end()
  })

  test(`${name}: a client without an open transaction is refused with the reason`, async () => {
    const bench = await open(url)
    const pool = nodePool(url, 1)
    const client = await pool.connect()
    await client.query('SELECT 1')
    await assert.rejects(
      Promise.resolve(bench.transport.transaction?.(client)),
      (error) =>
        hasCode(error, 'MILLRACE_FOREIGN_TRANSACTION') && /begin one first/.test(String(error)),
    )
    const never = new pg.Client({ connectionString: url })
    await assert.rejects(
      Promise.resolve(bench.transport.transaction?.(never)),
      (error) =>
        hasCode(error, 'MILLRACE_FOREIGN_TRANSACTION') && /never connected/.test(String(error)),
    )
    // One that is just connecting sends what it was given in order, BEGIN included.
    const soon = new pg.Client({ connectionString: url })
    const connected = soon.connect()
    const begun = soon.query('BEGIN')
    assert.ok(await bench.transport.transaction?.(soon))
    await Promise.all([connected, begun])
    await soon.end()
    client.release()
    await pool.end()
    await bench.dispose()
  })

  test(`${name}: another database of the same server is foreign, and its transaction survives the question`, async () => {
    const bench = await open(url)
    const admin = nodePool(url, 1)
    const other = `other_${process.pid}_${Date.now()}`
    await admin.query(`CREATE DATABASE ${other}`)
    const elsewhere = new URL(url)
    elsewhere.pathname = `/${other}`
    for (const kind of ['pg', 'postgres.js'] as const) {
      await inTransaction(kind, elsewhere.href, async (tx) => {
        assert.equal(await bench.transport.transaction?.(tx), undefined)
        const [row] = (await pgExecutor(tx)?.execute('SELECT 1 AS one', [])) ?? []
        assert.equal(row?.one, 1)
      })
    }
    await admin.query(`DROP DATABASE ${other}`)
    await admin.end()
    await bench.dispose()
  })

  test(`${name}: a claim reads what it takes, whatever the statistics say`, async () => {
    const bench = await open(url)
    const { schema } = bench
    const pool = nodePool(url, 1)
    const table = `${quoteIdentifier(schema)}.message`
    // Vacuumed and never analysed: the planner then expects two or three ready messages out of these and would sort them all.
    await pool.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`)
    await pool.query(
      `INSERT INTO ${table} (queue_id, id, state, priority, ready_at, sent_at, body)
       SELECT 1, n::text, 0, 0, now(), now(), '' FROM generate_series(1, 100000) AS n`,
    )
    await pool.query(`VACUUM ${table}`)
    const client = await pool.connect()
    await client.query('BEGIN')
    const claimed = await client.query(statementsIn(schema).CLAIM, [1, 200, 30_000, 'test'])
    assert.equal(claimed.rowCount, 200)
    const { rows } = await client.query(
      `SELECT (idx_tup_fetch + seq_tup_read)::int4 AS n FROM pg_stat_xact_user_tables WHERE relid = '${table}'::regclass`,
    )
    assert.ok(rows[0].n < 1_000, `a claim of 200 read ${rows[0].n} rows`)
    await client.query('ROLLBACK')
    client.release()
    await pool.end()
    await bench.dispose()
  })

  test(`${name}: while handlers hold messages no session of ours is in a transaction`, async () => {
    // A name of its own: tests of other files work on this server at the same time.
    const ours = freshSchema()
    const named = new URL(url)
    named.searchParams.set('application_name', ours)
    const bench = await open(named.href)
    await bench.transport.send(
      'q',
      Array.from({ length: 50 }, (_, at) => envelope(`m${at}`)),
      { signal },
    )
    assert.equal((await take(bench.transport, 'q', 50)).length, 50)
    const pool = nodePool(url, 1)
    const { rows } = await pool.query(
      `SELECT count(*)::int4 AS all, count(*) FILTER (WHERE state LIKE 'idle in transaction%')::int4 AS busy
       FROM pg_stat_activity WHERE application_name = $1`,
      [ours],
    )
    assert.ok(rows[0].all > 0, 'the sessions carry the name that they are counted by')
    assert.equal(rows[0].busy, 0)
    await pool.end()
    await bench.dispose()
  })

  test(`${name}: what a receive gets after it was stopped goes back at once`, async () => {
    const bench = await open(url)
    await bench.transport.send('q', [envelope('m')], { signal })
    const options = { group: 'g', leaseMs: 60_000, maxInFlight: 1 }
    const subscription = await bench.transport.subscribe('q', options)
    const pool = nodePool(url, 1)
    const holder = await pool.connect()
    const claims = `${quoteIdentifier(bench.schema)}.claim`
    await holder.query('BEGIN')
    await holder.query(`LOCK TABLE ${claims} IN SHARE MODE`)
    const stop = new AbortController()
    const receiving = subscription.receive({ max: 1, waitMs: 5_000, signal: stop.signal })
    await until(async () => {
      const { rows } = await holder.query(
        'SELECT 1 FROM pg_locks WHERE NOT granted AND relation = $1::regclass',
        [claims],
      )
      return rows.length > 0
    })
    stop.abort()
    await holder.query('ROLLBACK')
    holder.release()
    assert.deepEqual(await receiving, [])
    assert.equal((await take(await bench.another(), 'q', 1)).length, 1)
    await pool.end()
    await bench.dispose()
  })

  test(`${name}: an ack in a transaction goes by the moment of the ack, not by that of the BEGIN`, async () => {
    const bench = await open(url)
    const pool = nodePool(url, 1)
    const claims = `${quoteIdentifier(bench.schema)}.claim`
    await bench.transport.send('q', [envelope('m')], { signal })
    const [delivery] = await take(bench.transport, 'q', 1)
    assert.ok(delivery)
    const tx = await pool.connect()
    await tx.query('BEGIN')
    const mine = await bench.transport.transaction?.(tx)
    assert.ok(mine)
    // The lease ends now, after the BEGIN; nobody sweeps, so that nothing but the time can refuse the ack.
    const direct = nodePool(url, 1)
    await direct.query(`UPDATE ${claims} SET expires_at = clock_timestamp()`)
    assert.equal((await mine.ack('q', [delivery]))[0]?.ok, false)
    await tx.query('ROLLBACK')
    tx.release()
    await Promise.all([pool.end(), direct.end()])
    await bench.dispose()
  })

  test(`${name}: a claim does not wait for a row that another transaction holds`, async () => {
    const bench = await open(url)
    const pool = nodePool(url, 1)
    await bench.transport.send('q', [envelope('held'), envelope('free')], { signal })
    const other = await pool.connect()
    await other.query('BEGIN')
    const messages = `${quoteIdentifier(bench.schema)}.message`
    await other.query(`SELECT FROM ${messages} WHERE id = 'held' FOR UPDATE`)
    const [taken] = await take(bench.transport, 'q', 2)
    assert.equal(taken?.envelope.id, 'free')
    await other.query('ROLLBACK')
    other.release()
    await pool.end()
    assert.equal((await take(bench.transport, 'q', 2))[0]?.envelope.id, 'held')
    await bench.dispose()
  })

  test(`${name}: counters at their limits do not stop the queue`, async () => {
    const bench = await open(url)
    const { transport, schema } = bench
    await transport.send(
      'q',
      Array.from({ length: 10 }, (_, at) => envelope(`m${at}`)),
      { signal },
    )
    const pool = nodePool(url, 1)
    await pool.query(
      `UPDATE ${quoteIdentifier(schema)}.message SET deliveries = $1, counted = $1, crashes = $1, redrives = $1 WHERE id = 'm3'`,
      ['9223372036854775807'],
    )
    const subscription = await transport.subscribe('q', {
      group: 'g',
      leaseMs: 500,
      maxInFlight: 10,
    })
    const all = await subscription.receive({ max: 10, waitMs: 1_000, signal })
    assert.equal(all.length, 10)
    const outcomes = await subscription.settle(
      all.map((delivery) => ({ as: 'released', delivery, delayMs: 0, counted: true })),
    )
    assert.ok(outcomes.every((outcome) => outcome.ok))
    assert.equal((await subscription.receive({ max: 10, waitMs: 1_000, signal })).length, 10)
    await pool.end()
    await bench.dispose()
  })
}

const pooler = pgBouncer()

if (pooler) {
  test('behind a pooler that swallows notifications this is noticed, said, and polling does it all', async () => {
    const warnings: string[] = []
    const logger = { ...silentLogger, warn: (text: string) => void warnings.push(text) }
    const bench = await open(pooler.url, { logger })
    await until(async () => warnings.length > 0)
    assert.match(warnings[0] ?? '', /LISTEN.*polls more often/)
    const subscription = await bench.transport.subscribe('q', {
      group: 'g',
      leaseMs: 5_000,
      maxInFlight: 1,
    })
    const waiting = subscription.receive({ max: 1, waitMs: 10_000, signal })
    const far = await bench.another()
    await far.send('q', [envelope('a')], { signal })
    assert.equal((await waiting).length, 1)
    await bench.dispose()
  })
}

for (const { name, url } of servers) {
  test(`${name}: keys whose window has ended are forgotten as new ones come`, async (t) => {
    const bench = await open(url, { listen: false })
    const pool = nodePool(url, 1)
    t.after(async () => {
      await bench.dispose()
      await pool.end()
    })
    const keyed = (key: string, windowMs: number) =>
      envelope(key, { remember: [{ kind: 'dedupe', key, fingerprint: undefined, windowMs }] })
    const table = `${quoteIdentifier(bench.schema)}.remembered_key`
    const old = Array.from({ length: 60 }, (_, n) => keyed(`old-${n}`, 60_000))
    await bench.transport.send('q', old, { signal })
    await pool.query(`UPDATE ${table} SET expires_at = now()`)
    let sent = 0
    await until(async () => {
      await bench.transport.send('q', [keyed(`new-${sent++}`, 60_000)], { signal })
      const { rows } = await pool.query(`SELECT key FROM ${table} WHERE key LIKE 'old-%'`)
      return rows.length === 0
    })
    // Faster than they come: else what has piled up would stay.
    assert.ok(sent < old.length / 2, `${sent} sends`)
  })
}

/** How many sessions wait for another's transaction. */
async function waiters(url: string, schema: string): Promise<number> {
  const pool = nodePool(url, 1)
  const { rows } = await pool.query(
    "SELECT count(*)::int4 AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND strpos(query, $1) > 0",
    [`${quoteIdentifier(schema)}.remembered_key`],
  )
  await pool.end()
  return rows[0].n
}

async function inTransaction(
  kind: 'pg' | 'postgres.js',
  url: string,
  run: (tx: unknown) => Promise<void>,
): Promise<void> {
  if (kind === 'postgres.js') {
    const sql = jsPool(url, 1)
    await sql.begin((tx) => run(tx)).finally(() => sql.end())
    return
  }
  const pool = nodePool(url, 1)
  const tx = await pool.connect()
  try {
    await tx.query('BEGIN')
    await run(tx)
    await tx.query('COMMIT')
  } catch (error) {
    await tx.query('ROLLBACK')
    throw error
  } finally {
    tx.release()
    await pool.end()
  }
}
