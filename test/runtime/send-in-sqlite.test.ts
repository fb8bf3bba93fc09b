import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { createMillrace, defineQueue } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { memory } from 'millrace/memory'
import { sqliteOutbox } from 'millrace/outbox'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'

const plain = defineQueue({ name: 'plain', owner: 'o', payload: z.object({ n: z.number() }) })
const checked = defineQueue({
  name: 'checked',
  owner: 'o',
  payload: z.object({ n: z.number().refine(async (n) => n > 0) }),
  retry: { attempts: 1 },
})
const queues = [plain, checked]
const clients = {
  'node:sqlite': () => new DatabaseSync(':memory:'),
  'better-sqlite3': () => new Database(':memory:'),
}

for (const [client, open] of Object.entries(clients)) {
  for (const place of ['transport', 'outbox'] as const) {
    test(`${client}, ${place}: a send inside a synchronous transaction follows it, or is refused before the COMMIT`, async (t) => {
      const db = open()
      db.exec('CREATE TABLE rows (n INTEGER)')
      const app = await createMillrace({
        ...(place === 'transport'
          ? { transport: sqlite({ db }) }
          : { transport: memory(), outbox: sqliteOutbox({ db }) }),
        queues,
        logger: silentLogger,
      })
      t.after(async () => {
        await app.close({ timeoutMs: 0 })
        db.close()
      })
      const transact = <T>(send: () => T): T => {
        db.exec('BEGIN IMMEDIATE')
        db.exec('INSERT INTO rows VALUES (1)')
        try {
          const sent = send()
          db.exec('COMMIT')
          return sent
        } catch (error) {
          db.exec('ROLLBACK')
          throw error
        }
      }
      const rows = () => db.prepare('SELECT count(*) AS n FROM rows').get()
      await transact(() => app.send(plain, { n: 1 }, { tx: db }))
      assert.deepEqual({ ...(rows() as object) }, { n: 1 })
      const refused = { code: 'MILLRACE_TX_ASYNC', message: /the schema of queue "checked"/ }
      // What the schema says later, which is no here, is for nobody, and ends no process.
      for (const n of [1, -1]) {
        assert.throws(() => transact(() => app.send(checked, { n }, { tx: db })), refused)
        assert.throws(() => transact(() => app.sendBatch(checked, [{ n }], { tx: db })), refused)
      }
      assert.deepEqual({ ...(rows() as object) }, { n: 1 })
      const from = performance.now()
      await app.close({ timeoutMs: 20_000 })
      assert.ok(performance.now() - from < 10_000, 'its end waits for no send that is over')
    })
  }
}

test('inside a SQLite ctx.tx an asynchronous schema is blamed, not the function', async (t) => {
  const db = new DatabaseSync(':memory:')
  const dead = Promise.withResolvers<string>()
  const app = await createMillrace({
    transport: sqlite({ db }),
    inbox: sqliteInbox({ db }),
    queues,
    logger: silentLogger,
    onDeadLetter: (letter) => dead.resolve(letter.reason),
  })
  t.after(async () => {
    await app.close({ timeoutMs: 0 })
    db.close()
  })
  app.work(plain, async (_message, ctx) => {
    await ctx.tx(() => {
      void ctx.send(checked, { n: 1 })
    })
  })
  await app.send(plain, { n: 1 })
  await app.start()
  assert.match(await dead.promise, /^the schema of queue "checked" is asynchronous/)
})
