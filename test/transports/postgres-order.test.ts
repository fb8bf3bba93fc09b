import assert from 'node:assert/strict'
import { test } from 'node:test'
import { quoteIdentifier } from '../../src/sql/pg-name.ts'
import { queueSchema } from '../../src/transports/postgres/schema.ts'
import { envelope, open, signal, until } from './postgres-bench.ts'
import { NO_SERVER, nodePool, postgresServers } from './postgres-servers.ts'

const servers = postgresServers()
if (servers.length === 0) test('order in postgres', { skip: NO_SERVER }, () => {})

const QUEUE = 'steps'
const subscribing = { group: 'g', leaseMs: 60_000, maxInFlight: 100 } as const

function keyed(id: string) {
  return envelope(id, { orderingKey: id.slice(0, 1) })
}

for (const { name, url } of servers) {
  test(`${name}: Senders and workers of the same keys in any order never wait for each other in a circle.`, async () => {
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
        const acts = came.map((delivery) => ({ as: 'acked', delivery }) as const)
        const settled = await from.settle(acts.reverse())
        left -= settled.filter(({ ok }) => ok).length
      }
      await from.close()
    }
    await Promise.all([0, 1, 2, 3].map(send).concat([work(), work(), work()]))
    assert.deepEqual(overtaken, [])
    const pool = nodePool(url)
    const { rows } = await pool.query(
      `SELECT count(*)::int AS n FROM ${quoteIdentifier(bench.schema)}.ordering_key`,
    )
    await pool.end()
    assert.deepEqual(rows, [{ n: 0 }], 'a key that is empty leaves nothing behind')
    await bench.dispose()
  })

  test(`${name}: A message sent in an open transaction has its place when that commits, and one with an older snapshot fails.`, async () => {
    const bench = await open(url, { queue: QUEUE })
    const { transport } = bench
    const pool = nodePool(url)
    const [first, second] = [await pool.connect(), await pool.connect()]
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
    first.release()
    second.release()
    await pool.end()
    await from.close()
    await bench.dispose()
  })

  test(`${name}: Messages that an older version stored are lined up, and its instances keep the order too.`, async () => {
    const bench = await open(url, { queue: QUEUE })
    const { transport } = bench
    const pool = nodePool(url)
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
    await pool.end()
    await from.close()
    await bench.dispose()
  })
}
