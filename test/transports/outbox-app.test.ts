import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createMillrace, defineQueue } from 'millrace'
import { postgresInbox, sqliteInbox } from 'millrace/inbox'
import { postgresOutbox, sqliteOutbox } from 'millrace/outbox'
import { postgres } from 'millrace/postgres'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import {
  dropSchema,
  freshSchema,
  NO_SERVER,
  nodePool,
  postgresServers,
} from './postgres-servers.ts'
import { databaseFile } from './sqlite-harness.ts'
import { until } from './until.ts'

const servers = postgresServers()
if (servers.length === 0) test('an outbox between stores', { skip: NO_SERVER }, () => {})

const mail = defineQueue({
  name: 'mail',
  owner: 'team-growth',
  payload: z.object({ to: z.string() }),
  idempotencyKey: ({ to }) => to,
})

for (const { name, url } of servers) {
  test(`${name}: queues in one schema and the inbox in another are one database, and nobody is told to name an outbox`, async (t) => {
    const [queuesIn, inboxIn] = [freshSchema(), freshSchema()]
    const pool = nodePool(url)
    const warnings: string[] = []
    const app = await createMillrace({
      transport: postgres({ pool, schema: queuesIn }),
      inbox: postgresInbox({ pool, schema: inboxIn }),
      queues: [mail],
      logger: { ...silentLogger, warn: (message) => void warnings.push(message) },
    })
    t.after(async () => {
      await app.close({ timeoutMs: 0 })
      await Promise.all([queuesIn, inboxIn].map((schema) => dropSchema(url, schema)))
      await pool.end()
    })
    const heard: string[] = []
    app.work(mail, async ({ payload }, ctx) => {
      heard.push(payload.to)
      if (payload.to === 'first')
        await ctx.tx(async () => void (await ctx.send(mail, { to: 'second' })))
    })
    await app.start()
    await app.send(mail, { to: 'first' })
    await until('what was sent within the transaction', () => heard.includes('second'))
    assert.deepEqual([warnings, app.admin.backend().notes], [[], []])
  })

  test(`${name}: business rows in Postgres and the message in SQLite follow one commit`, async () => {
    const schema = freshSchema()
    const pool = nodePool(url)
    const { file, dispose } = await databaseFile()
    const app = await createMillrace({
      transport: sqlite({ file }),
      queues: [mail],
      outbox: postgresOutbox({ pool, schema }),
      logger: silentLogger,
    })
    const heard: string[] = []
    app.work(mail, async ({ payload }) => void heard.push(payload.to))
    await app.start()
    for (const [to, end] of [
      ['undone', 'ROLLBACK'],
      ['done', 'COMMIT'],
    ] as const) {
      const client = await pool.connect()
      await client.query('BEGIN')
      const sent = await app.send(mail, { to }, { tx: client, headers: { a: 'b' } })
      assert.equal(sent.duplicate, false)
      await client.query(end)
      client.release()
    }
    await until('the message to come through', () => heard.length > 0)
    const idle = await pool.connect()
    await idle.query('SELECT 1')
    await assert.rejects(app.send(mail, { to: 'x' }, { tx: idle }), {
      code: 'MILLRACE_FOREIGN_TRANSACTION',
    })
    idle.release()
    assert.deepEqual(heard, ['done'])
    assert.deepEqual(await app.health(), { ok: true, reasons: [] })
    await app.close()
    await pool.end()
    await dropSchema(url, schema)
    await dispose()
  })

  test(`${name}: business rows in SQLite and the message in Postgres follow one commit`, async () => {
    const schema = freshSchema()
    const { file, dispose } = await databaseFile()
    const db = new DatabaseSync(file)
    const app = await createMillrace({
      transport: postgres({ url, schema }),
      queues: [mail],
      inbox: sqliteInbox({ db }),
      outbox: sqliteOutbox({ db }),
      logger: silentLogger,
    })
    const heard: string[] = []
    app.work(mail, async ({ payload }, ctx) => {
      await ctx.tx((tx) => {
        tx.prepare('INSERT INTO heard VALUES (?)').run(payload.to)
        if (payload.to === 'first') void ctx.send(mail, { to: 'second' })
      })
      heard.push(payload.to)
    })
    db.exec('CREATE TABLE heard (name TEXT NOT NULL)')
    await app.start()
    db.exec('BEGIN IMMEDIATE')
    const sent = app.send(mail, { to: 'first' }, { tx: db })
    db.exec('COMMIT')
    await sent
    await until('both messages to come through', () => heard.length === 2)
    const rows = db.prepare('SELECT name FROM heard ORDER BY name').all()
    assert.deepEqual(
      rows.map((row) => row['name']),
      ['first', 'second'],
    )
    await app.close()
    db.close()
    await dropSchema(url, schema)
    await dispose()
  })

  test(`${name}: with queue and inbox in one database effect, key and ack commit together`, async () => {
    const schema = freshSchema()
    const pool = nodePool(url)
    const app = await createMillrace({
      transport: postgres({ pool, schema }),
      queues: [mail],
      inbox: postgresInbox({ pool, schema }),
      logger: silentLogger,
    })
    let effects = 0
    app.work(mail, async ({ payload }, ctx) => {
      await ctx.tx(async (client) => {
        effects += 1
        await client.query('SELECT 1')
        if (payload.to === 'a') await ctx.send(mail, { to: 'from the effect' })
      })
      // Only the ack that committed with the effect keeps this from being tried again.
      throw new Error('after the effect')
    })
    await app.start()
    await app.sendBatch(mail, [{ to: 'a' }, { to: 'b' }, { to: 'a' }])
    await until('all to be done', async () => {
      const { depth, inFlight, scheduled } = await app.admin.stats(mail)
      return effects >= 3 && depth === 0 && inFlight === 0 && scheduled === 0
    })
    const keys = await pool.query(
      `SELECT key FROM "${schema.replaceAll('"', '""')}".inbox ORDER BY key`,
    )
    assert.deepEqual(
      keys.rows.map(({ key }) => key),
      ['a', 'b', 'from the effect'],
    )
    assert.equal((await app.admin.deadLetters.list(mail)).items.length, 0)
    await app.close()
    await pool.end()
    await dropSchema(url, schema)
  })
}
