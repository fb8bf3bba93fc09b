import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type pg from 'pg'
import type { Sent, Settled } from '../../src/model/delivery.ts'
import { quoteIdentifier } from '../../src/sql/pg-name.ts'
import { queueSchema } from '../../src/transports/postgres/schema.ts'
import { envelope, open, signal, until } from './postgres-bench.ts'
import { NO_SERVER, nodePool, postgresServers } from './postgres-servers.ts'

const servers = postgresServers()
if (servers.length === 0) test('order in postgres', { skip: NO_SERVER }, () => {})

const QUEUE = 'steps'

function endingPool(t: TestContext, url: string): pg.Pool {
  const pool = nodePool(url)
  // Not waited for: it is over once those that were borrowed are back.
  t.after(() => void pool.end())
  return pool
}

/** Its connection ends with the test, also when that fails half way: the process would wait for it. */
async function borrowed(t: TestContext, pool: pg.Pool): Promise<pg.PoolClient> {
  const client = await pool.connect()
  t.after(() => client.release(true))
  return client
}
const subscribing = { group: 'g', leaseMs: 60_000, maxInFlight: 100 } as const

function keyed(id: string) {
  return envelope(id, { orderingKey: id.slice(0, 1) })
}

/** How many wait for this one's transaction, or for somebody who waits for it. */
/** Neither waits for ever: on a busy machine one may give up before the other has come, and tries again as their callers do. */
async function waited<Outcome extends Sent | Settled>(
  act: () => Promise<readonly Outcome[]>,
): Promise<readonly Outcome[]> {
  for (;;) {
    const outcomes = await act()
    if (!outcomes.some((one) => !one.ok && one.fault.code === 'held')) return outcomes
  }
}

async function waitersOf(holder: pg.PoolClient, pool: pg.Pool): Promise<number> {
  const { rows } = await holder.query('SELECT pg_backend_pid() AS pid')
  const found = await pool.query(
    `WITH RECURSIVE waiter (pid) AS (
      SELECT $1::integer UNION SELECT behind.pid FROM pg_stat_activity AS behind
      JOIN waiter ON waiter.pid = ANY (pg_blocking_pids(behind.pid)))
    SELECT count(*)::int - 1 AS n FROM waiter`,
    [rows[0]?.pid],
  )
  return found.rows[0]?.n
}

for (const { name, url } of servers) {
  test(`${name}: Senders and workers of the same keys in any order never wait for each other in a circle.`, async (t) => {
    const bench = await open(url, { queue: QUEUE })
    const { transport } = bench
    const keys = [...'ABCDEFGHIJ']
    const rounds = 15
    const send = async (sender: number): Promise<void> => {
      for (let round = 0; round < rounds; round++) {
        const turn = (sender * 3 + round * 7) % keys.length
        const batch = [...keys.slice(turn), ...keys.slice(0, turn)]
        const ordered = sender % 2 === 0 ? batch : batch.reverse()
        const sent = await transport.send(
          QUEUE,
          ordered.map((key) => keyed(`${key}-${sender}-${round}`)),
          { signal },
        )
        assert.ok(sent.every(({ ok }) => ok))
      }
    }
    const last = new Map<string, number>()
    const overtaken: string[] = []
    let left = 4 * rounds * keys.length
    const work = async (): Promise<void> => {
      const from = await transport.subscribe(QUEUE, subscribing)
      while (left > 0) {
        const came = await from.receive({ max: 10, waitMs: 100, signal })
        for (const { envelope: one } of came) {
          // Of one sender and key the rounds must ascend.
          const [key, sender, round] = one.id.split('-')
          const line = `${key}-${sender}`
          if (Number(round) !== (last.get(line) ?? -1) + 1) overtaken.push(one.id)
          last.set(line, Number(round))
        }
        let acts = came.map((delivery) => ({ as: 'acked', delivery }) as const).reverse()
        while (acts.length > 0) {
          const settled = await from.settle(acts)
          left -= settled.filter(({ ok }) => ok).length
          // On a slow machine a send of another may have its key for longer than a settlement waits.
          acts = acts.filter((_, i) => {
            const one = settled[i]
            return one?.ok === false && one.fault.code === 'held'
          })
        }
      }
      await from.close()
    }
    await Promise.all([0, 1, 2, 3].map(send).concat([work(), work(), work()]))
    assert.deepEqual(overtaken, [])
    const pool = endingPool(t, url)
    const { rows } = await pool.query(
      `SELECT count(*)::int AS n FROM ${quoteIdentifier(bench.schema)}.ordering_key`,
    )
    assert.deepEqual(rows, [{ n: 0 }], 'a key that is empty leaves nothing behind')
    await bench.dispose()
  })

  test(`${name}: To end one message or to send one reads a few rows, however many wait and however old the statistics are.`, async (t) => {
    const bench = await open(url, { queue: QUEUE })
    const { transport } = bench
    const pool = endingPool(t, url)
    const table = `${quoteIdentifier(bench.schema)}.message`
    const send = async (ids: readonly string[]): Promise<void> => {
      const sent = await transport.send(QUEUE, ids.map(keyed), { signal })
      assert.ok(sent.every(({ ok }) => ok))
    }
    // As after a queue without a backlog: nobody waits behind another one.
    await send([...'ABCDEFGHIJ'])
    await pool.query(`ANALYZE ${table}`)
    for (let round = 0; round < 40; round++) {
      await send(Array.from({ length: 100 }, (_, n) => `${'ABCDEFGHIJ'[n % 10]}${round}-${n}`))
    }
    const client = await borrowed(t, pool)
    const readIn = async (act: string): Promise<number> => {
      await client.query('BEGIN')
      await client.query(act)
      const { rows } = await client.query(
        `SELECT seq_tup_read::int + idx_tup_fetch::int AS n FROM pg_stat_xact_user_tables
        WHERE relid = '${table}'::regclass`,
      )
      await client.query('ROLLBACK')
      return rows[0]?.n
    }
    const { rows: heads } = await pool.query(`SELECT seq FROM ${table} WHERE id IN ('A', 'B', 'C')`)
    const these = `seq = ANY ('{${heads.map(({ seq }) => seq)}}')`
    const ended = await readIn(`DELETE FROM ${table} WHERE ${these}`)
    assert.ok(ended < 200, `${ended} rows were read to end 3 messages`)
    const columns = 'queue_id, id, state, priority, ready_at, sent_at, ordering_key, headers, body'
    const copy = `queue_id, id || '-late', 0, priority, ready_at, sent_at, ordering_key, headers, body`
    const sent = await readIn(
      `INSERT INTO ${table} (${columns}) SELECT ${copy} FROM ${table} WHERE ${these}`,
    )
    assert.ok(sent < 200, `${sent} rows were read to send 3 messages`)
    await bench.dispose()
  })

  test(`${name}: A message sent in an open transaction has its place when that commits, and one with an older snapshot fails.`, async (t) => {
    const bench = await open(url, { queue: QUEUE })
    const { transport } = bench
    const pool = endingPool(t, url)
    const [first, second] = [await borrowed(t, pool), await borrowed(t, pool)]
    await second.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await second.query('SELECT 1')
    await first.query('BEGIN')
    await (await transport.transaction?.(first))?.send(QUEUE, [keyed('A1')])
    const later = transport.send(QUEUE, [keyed('A2')], { signal })
    await first.query('COMMIT')
    assert.deepEqual(await later, [{ ok: true, id: 'A2', duplicate: false }])
    const late = await transport.transaction?.(second)
    await assert.rejects(async () => late?.send(QUEUE, [keyed('A3')]), { code: '40001' })
    await second.query('ROLLBACK')
    const from = await transport.subscribe(QUEUE, subscribing)
    const came = await from.receive({ max: 10, waitMs: 1_000, signal })
    assert.deepEqual(
      came.map((one) => one.envelope.id),
      ['A1'],
    )
    await from.close()
    await bench.dispose()
  })

  test(`${name}: Messages that an older version stored are lined up, and its instances keep the order too.`, async (t) => {
    const bench = await open(url, { queue: QUEUE })
    const { transport } = bench
    const pool = endingPool(t, url)
    const at = quoteIdentifier(bench.schema)
    const inSchema = (sql: string): string => sql.replaceAll('{schema}', at)
    // As version 1 left it: keys travelled, and nobody kept them in order.
    await pool.query(`DROP TRIGGER enter_key ON ${at}.message`)
    const batch = ['A1', 'A2', 'B1', 'A3'].map(keyed)
    await transport.send(QUEUE, batch, { signal })
    const lineUp = queueSchema.migrations[1]?.statements.at(-1) ?? ''
    const trigger = queueSchema.migrations[1]?.statements.find((sql) =>
      sql.startsWith('CREATE TRIGGER enter_key'),
    )
    await pool.query(inSchema(trigger ?? ''))
    await pool.query(inSchema(lineUp))
    const { rows } = await pool.query(`SELECT id, state FROM ${at}.message ORDER BY seq`)
    assert.deepEqual(
      rows.map(({ id, state }) => `${id} ${state}`),
      ['A1 0', 'A2 4', 'B1 0', 'A3 4'],
    )
    // What an older instance does at an ack.
    await pool.query(`DELETE FROM ${at}.message WHERE id = 'A1'`)
    const from = await transport.subscribe(QUEUE, subscribing)
    const ids: string[] = []
    await until(async () => {
      const came = await from.receive({ max: 10, waitMs: 100, signal })
      ids.push(...came.map((one) => one.envelope.id))
      return ids.length === 2
    })
    assert.deepEqual(ids.sort(), ['A2', 'B1'])
    await from.close()
    await bench.dispose()
  })

  test(`${name}: A message that is cancelled while its turn comes leaves its turn to the next one.`, async (t) => {
    const bench = await open(url, { queue: QUEUE })
    const { transport } = bench
    const pool = endingPool(t, url)
    const admin = await borrowed(t, pool)
    await transport.send(QUEUE, ['A1', 'A2', 'A3'].map(keyed), { signal })
    const from = await transport.subscribe(QUEUE, subscribing)
    const [head] = await from.receive({ max: 10, waitMs: 1_000, signal })
    assert.ok(head)
    await admin.query('BEGIN')
    await admin.query(
      `DELETE FROM ${quoteIdentifier(bench.schema)}.message WHERE queue_id = 1 AND id = 'A2'`,
    )
    const acked = from.settle([{ as: 'acked', delivery: head }])
    await until(async () => (await waitersOf(admin, pool)) === 1)
    await admin.query('COMMIT')
    assert.deepEqual(await acked, [{ ok: true }])
    const came = await from.receive({ max: 10, waitMs: 5_000, signal })
    assert.deepEqual(
      came.map((one) => one.envelope.id),
      ['A3'],
    )
    await from.close()
    await bench.dispose()
  })

  test(`${name}: A send whose snapshot still sees messages of a key that are gone fails, and does not wait behind them.`, async (t) => {
    const bench = await open(url, { queue: QUEUE })
    const { transport } = bench
    const pool = endingPool(t, url)
    const late = await borrowed(t, pool)
    for (const batch of [['A2'], ['A2', 'B1']]) {
      await transport.send(QUEUE, [keyed('A1')], { signal })
      await late.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
      await late.query('SELECT 1')
      const from = await transport.subscribe(QUEUE, subscribing)
      const [head] = await from.receive({ max: 10, waitMs: 1_000, signal })
      assert.ok(head)
      await from.settle([{ as: 'acked', delivery: head }])
      const sending = await transport.transaction?.(late)
      await assert.rejects(async () => sending?.send(QUEUE, batch.map(keyed)), { code: '40001' })
      await late.query('ROLLBACK')
      await from.close()
    }
    await bench.dispose()
  })

  test(`${name}: A settlement that comes too late leaves no key behind.`, async (t) => {
    const bench = await open(url, { queue: QUEUE })
    const { transport } = bench
    await transport.send(QUEUE, ['A1', 'B1'].map(keyed), { signal })
    const from = await transport.subscribe(QUEUE, subscribing)
    const came = await from.receive({ max: 10, waitMs: 1_000, signal })
    assert.equal(came.length, 2)
    for (const { envelope: one } of came) await transport.browse?.cancel?.(QUEUE, one.id)
    const settled = await from.settle(came.map((delivery) => ({ as: 'acked', delivery })))
    assert.ok(settled.every(({ ok }) => !ok))
    const pool = endingPool(t, url)
    const { rows } = await pool.query(
      `SELECT key FROM ${quoteIdentifier(bench.schema)}.ordering_key`,
    )
    assert.deepEqual(rows, [])
    await from.close()
    await bench.dispose()
  })

  test(`${name}: A message that is sent again while it dies stays dead, and its key halted.`, async (t) => {
    const bench = await open(url, { queue: QUEUE })
    const { transport } = bench
    const at = quoteIdentifier(bench.schema)
    await transport.topology.ensure(
      [{ name: QUEUE, owner: 'team', maxDepth: undefined, onDead: 'halt-key' }],
      signal,
    )
    const pool = endingPool(t, url)
    const holder = await borrowed(t, pool)
    await transport.send(QUEUE, ['A1', 'A2'].map(keyed), { signal })
    const from = await transport.subscribe(QUEUE, subscribing)
    const [head] = await from.receive({ max: 10, waitMs: 1_000, signal })
    assert.ok(head)
    await holder.query('BEGIN')
    await holder.query(`SELECT ${at}.lock_key(1, 'A')`)
    const die = () =>
      waited(() =>
        from.settle([{ as: 'dead', delivery: head, errorClass: 'permanent', reason: '' }]),
      )
    const send = () => waited(() => transport.send(QUEUE, [keyed('A1')], { signal }))
    const dying = die()
    await until(async () => (await waitersOf(holder, pool)) === 1)
    const again = send()
    await until(async () => (await waitersOf(holder, pool)) === 2)
    await holder.query('COMMIT')
    // One has the row and wants the key, the other the other way round, when Postgres lets the later one go first: it ends one
    // of the two then, and whoever was ended tries again, as a worker and a sender do.
    const [died, sent] = await Promise.all([dying.catch(die), again.catch(send)])
    assert.deepEqual(died, [{ ok: true }])
    assert.deepEqual(sent, [{ ok: true, id: 'A1', duplicate: true }])
    assert.equal((await transport.haltedKeys?.get(QUEUE, 'A'))?.messageId, 'A1')
    await from.close()
    await bench.dispose()
  })

  for (const act of ['redrive', 'discard', 'purge'] as const) {
    test(`${name}: A ${act} locks the keys of several messages in their order, as everybody does.`, async (t) => {
      const bench = await open(url, { queue: QUEUE })
      const { transport } = bench
      const at = quoteIdentifier(bench.schema)
      await transport.topology.ensure(
        [{ name: QUEUE, owner: 'team', maxDepth: undefined, onDead: 'halt-key' }],
        signal,
      )
      // However the server goes through them (by id, by age, by place), B comes first.
      for (const [id, orderingKey] of [
        ['1', 'B'],
        ['2', 'A'],
      ] as const)
        await transport.send(QUEUE, [envelope(id, { orderingKey })], { signal })
      const from = await transport.subscribe(QUEUE, subscribing)
      for (const _ of act === 'purge' ? [] : ['1', '2']) {
        const [head] = await from.receive({ max: 1, waitMs: 1_000, signal })
        assert.ok(head)
        await from.settle([{ as: 'dead', delivery: head, errorClass: 'permanent', reason: '' }])
      }
      const pool = endingPool(t, url)
      const holder = await borrowed(t, pool)
      await holder.query('BEGIN')
      await holder.query(`SELECT ${at}.lock_key(1, 'A')`)
      const note = { actor: 'someone', reason: 'test' }
      const acting =
        act === 'purge'
          ? transport.browse?.purge?.(QUEUE)
          : transport.shelf?.[act](QUEUE, ['1', '2'], note)
      await until(async () => (await waitersOf(holder, pool)) === 1)
      // Whoever has A and wants B gets it.
      await holder.query(`SELECT 1 FROM ${at}.ordering_key WHERE key = 'B' FOR UPDATE NOWAIT`)
      await holder.query('COMMIT')
      assert.deepEqual(await acting, act === 'purge' ? 2 : ['1', '2'])
      await from.close()
      await bench.dispose()
    })
  }
}
