import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue } from 'millrace'
import { postgres } from 'millrace/postgres'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import {
  dropSchema,
  freshSchema,
  NO_SERVER,
  nodePool,
  postgresServers,
} from './postgres-servers.ts'

const servers = postgresServers()
if (servers.length === 0) test('postgres held keys', { skip: NO_SERVER }, () => {})

for (const { name, url } of servers) {
  test(`${name}: a key that an open transaction holds keeps waiting who asks for it, and nobody else`, async (t) => {
    const schema = freshSchema()
    const queue = defineQueue({ name: 'q', owner: 'team', payload: z.number() })
    const pool = nodePool(url, 2)
    const app = await createMillrace({
      transport: postgres({ url, schema }),
      queues: [queue],
      logger: silentLogger,
    })
    const tx = await pool.connect()
    t.after(async () => {
      tx.release(true)
      await app.close()
      await pool.end()
      await dropSchema(url, schema)
    })
    await tx.query('BEGIN')
    await app.send(queue, 1, { tx, idempotencyKey: 'held' })

    let waited = true
    const held = app.send(queue, 1, { idempotencyKey: 'held' }).finally(() => {
      waited = false
    })
    // Gathered with it, and later, while it waits.
    const beside = [
      app.send(queue, 2),
      app.send(queue, 3, { idempotencyKey: 'free' }),
      app.send(queue, 4, { dedupeKey: 'free' }),
    ]
    await Promise.all(beside)
    await app.send(queue, 5)
    await app.send(queue, 6, { idempotencyKey: 'also-free' })
    assert.equal(waited, true)
    assert.equal((await app.admin.stats(queue)).depth, 5)

    await tx.query('ROLLBACK')
    assert.equal((await held).duplicate, false)
    assert.equal((await app.admin.stats(queue)).depth, 6)
  })
}
