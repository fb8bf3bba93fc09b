import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type OutboxRow, type Publish, postgresOutbox } from 'millrace/outbox'
import {
  add,
  envelope,
  outboxContext,
  type PostgresOutboxSubject,
  postgresOutboxClients,
  withOutbox,
} from './outbox-subjects.ts'
import {
  dropSchema,
  freshSchema,
  NO_SERVER,
  nodePool,
  postgresServers,
} from './postgres-servers.ts'
import { until } from './until.ts'

if (postgresServers().length === 0) test('outbox on postgres', { skip: NO_SERVER }, () => {})

const DEBEZIUM = ['aggregateid', 'aggregatetype', 'id', 'payload', 'type']

for (const { name, open } of postgresOutboxClients().filter(({ pooled }) => !pooled)) {
  const about = withOutbox(name, open)

  for (const orderingKey of [undefined, 'k']) {
    const which = orderingKey === undefined ? 'without a key' : 'of one key'
    about(
      `a row ${which} whose transaction commits late is not skipped`,
      async (subject, outbox) => {
        const ids: string[] = []
        const publish = publishInto(ids)
        const [early, late, undone] = [0, 1, 2].map(() =>
          envelope(orderingKey === undefined ? {} : { orderingKey }),
        )
        if (!early || !late || !undone) throw new Error('no rows')
        const t1 = await subject.begin()
        await (await outbox.transaction(t1.tx))?.add('orders', [early])
        const t3 = await subject.begin()
        await (await outbox.transaction(t3.tx))?.add('orders', [undone])
        await add(subject, outbox, [late])
        assert.equal((await outbox.relay(10, publish)).published, 1)
        await t1.commit()
        await t3.rollback()
        assert.equal((await outbox.relay(10, publish)).published, 1)
        assert.deepEqual(ids, [late.id, early.id])
        assert.equal((await outbox.lag()).rows, 0)
      },
    )
  }

  about(
    `a row that commits late does not overtake the one of its key that is being published`,
    async (subject, outbox) => {
      const other = await subject.connect()
      const [first, second] = [0, 1].map(() => envelope({ orderingKey: 'k' }))
      if (!first || !second) throw new Error('no rows')
      const t1 = await subject.begin()
      await (await outbox.transaction(t1.tx))?.add('orders', [first])
      await add(subject, outbox, [second])
      const ids: string[] = []
      await outbox.relay(10, async (rows) => {
        // The row that was written first is now the first of its key, and a second relay looks.
        await t1.commit()
        assert.equal((await other.relay(10, publishInto(ids))).taken, 0)
        return await publishInto(ids)(rows)
      })
      await other.relay(10, publishInto(ids))
      assert.deepEqual(ids, [second.id, first.id])
      await other.close()
    },
  )

  about(
    `a first row that somebody has locked keeps the later ones of its key back`,
    async (subject, outbox) => {
      const [first, second, free] = [
        envelope({ orderingKey: 'k' }),
        envelope({ orderingKey: 'k' }),
        envelope({ orderingKey: 'l' }),
      ]
      await add(subject, outbox, [first, second, free])
      const admin = nodePool(subject.url, 1)
      const client = await admin.connect()
      await client.query('BEGIN')
      await client.query(`SELECT 1 FROM ${table(subject)} WHERE id = $1 FOR UPDATE`, [first.id])
      const ids: string[] = []
      await outbox.relay(10, publishInto(ids))
      const meanwhile = [...ids]
      await client.query('ROLLBACK')
      client.release()
      await admin.end()
      await outbox.relay(10, publishInto(ids))
      assert.deepEqual([meanwhile, ids], [[free.id], [free.id, first.id, second.id]])
    },
  )

  about(`published and not removed: sent again with the same id`, async (subject, outbox) => {
    const admin = nodePool(subject.url, 1)
    const one = envelope()
    await add(subject, outbox, [one])
    const ids: string[] = []
    for (let time = 0; time < 3; time++) {
      const cut = outbox.relay(10, async (rows) => {
        await cutRelay(admin, subject)
        return await publishInto(ids)(rows)
      })
      await assert.rejects(cut)
      await until('the rows to be free', async () => (await free(admin, subject)) === 1)
    }
    assert.equal((await outbox.relay(10, publishInto(ids))).published, 1)
    assert.deepEqual(ids, [one.id, one.id, one.id, one.id])
    assert.equal((await outbox.lag()).rows, 0)
    await admin.end()
  })

  about('its age is that of the oldest row', async (subject, outbox) => {
    const admin = nodePool(subject.url, 1)
    await add(subject, outbox, [envelope()])
    await admin.query(`UPDATE ${table(subject)} SET created_at = created_at - interval '1 hour'`)
    await add(subject, outbox, [envelope()])
    const { rows, ageMs } = await outbox.lag()
    assert.equal(rows, 2)
    assert.ok(ageMs >= 3_600_000 && ageMs < 3_660_000, String(ageMs))
    await admin.end()
  })

  about(`the columns are those of Debezium's outbox event router`, async (subject, outbox) => {
    const keyed = envelope({ orderingKey: 'k' })
    const plain = envelope()
    await add(subject, outbox, [keyed, plain])
    const admin = nodePool(subject.url, 1)
    const { rows } = await admin.query(
      `SELECT ${DEBEZIUM.join(', ')} FROM ${table(subject)} ORDER BY seq`,
    )
    assert.deepEqual(
      rows.map(({ payload, ...rest }) => ({ ...rest, payload: new Uint8Array(payload) })),
      [
        {
          id: keyed.id,
          aggregatetype: 'orders',
          aggregateid: 'k',
          type: 'message',
          payload: keyed.body,
        },
        {
          id: plain.id,
          aggregatetype: 'orders',
          aggregateid: plain.id,
          type: 'message',
          payload: plain.body,
        },
      ],
    )
    await admin.end()
  })
}

for (const { name, url } of postgresServers()) {
  test(`${name}: a client without an open transaction is refused, not used`, async () => {
    const schema = freshSchema()
    const pool = nodePool(url, 2)
    const outbox = await postgresOutbox({ pool, schema }).connect(outboxContext())
    const client = await pool.connect()
    await client.query('SELECT 1')
    const refused = Promise.resolve(outbox.transaction(client))
    await assert.rejects(refused, { code: 'MILLRACE_FOREIGN_TRANSACTION' })
    await client.query('BEGIN')
    assert.notEqual(await outbox.transaction(client), undefined)
    await client.query('ROLLBACK')
    const another = await pool.connect()
    await another.query('BEGIN')
    await another.query('SELECT 1 / 0').catch(() => undefined)
    await assert.rejects(Promise.resolve(outbox.transaction(another)), {
      code: 'MILLRACE_BACKEND_FAULT',
    })
    await another.query('ROLLBACK')
    await another.query('BEGIN')
    assert.notEqual(await outbox.transaction(another), undefined, 'the next one is another one')
    await another.query('ROLLBACK')
    another.release()
    client.release()
    await outbox.close()
    await pool.end()
    await dropSchema(url, schema)
  })
}

for (const { name, url } of postgresServers()) {
  test(`${name}: a relay that stops while it publishes is ended by the server after 60 s, and no other transaction of its connection is`, async () => {
    const schema = freshSchema()
    const pool = nodePool(url, 1)
    // The relay's own connection: there is no other.
    const session = await pool.connect()
    session.release()
    const limit = async (): Promise<unknown> => {
      const { rows } = await session.query('SHOW idle_in_transaction_session_timeout')
      return rows[0].idle_in_transaction_session_timeout
    }
    const before = await limit()
    const outbox = await postgresOutbox({ pool, schema }).connect(outboxContext())
    const client = await pool.connect()
    await client.query('BEGIN')
    await (await outbox.transaction(client))?.add('orders', [envelope()])
    await client.query('COMMIT')
    client.release()
    const limits: unknown[] = []
    const { published } = await outbox.relay(10, async (rows) => {
      limits.push(await limit())
      return await publishInto([])(rows)
    })
    limits.push(await limit())
    assert.deepEqual([published, limits], [1, ['1min', before]])
    await outbox.close()
    await pool.end()
    await dropSchema(url, schema)
  })
}

function publishInto(ids: string[]): Publish {
  return async (rows: readonly OutboxRow[]) =>
    rows.map(({ envelope: { id } }) => {
      ids.push(id)
      return { ok: true, id, duplicate: false }
    })
}

function table({ schema }: PostgresOutboxSubject): string {
  return `"${schema.replaceAll('"', '""')}".outbox`
}

type Admin = ReturnType<typeof nodePool>

/** Ends the connection that holds a row of the outbox. */
async function cutRelay(admin: Admin, subject: PostgresOutboxSubject): Promise<void> {
  const { rowCount } = await admin.query(
    `SELECT pg_terminate_backend(pid) FROM pg_locks
     WHERE relation = $1::regclass AND mode = 'RowShareLock' AND pid <> pg_backend_pid()`,
    [table(subject)],
  )
  assert.equal(rowCount, 1)
}

async function free(admin: Admin, subject: PostgresOutboxSubject): Promise<number> {
  const { rowCount } = await admin.query(`SELECT 1 FROM ${table(subject)} FOR UPDATE SKIP LOCKED`)
  return rowCount ?? 0
}
