import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { postgres } from 'millrace/postgres'
import pg from 'pg'
import { z } from 'zod'
import {
  dropSchema,
  freshSchema,
  NO_SERVER,
  nodePool,
  postgresServers,
} from './postgres-servers.ts'

const servers = postgresServers()
if (servers.length === 0) test('postgres close', { skip: NO_SERVER }, () => {})

const queue = defineQueue({ name: 'orders', owner: 'team', payload: z.number() })

for (const { name, url } of servers) {
  test(`${name}: what was sent before close is stored when close has ended`, async () => {
    const schema = freshSchema()
    const pool = nodePool(url)
    try {
      const transport = postgres({ pool, schema })
      const app = await createMillrace({ transport, queues: [queue], logger: silentLogger })
      await app.send(queue, 0)
      const sent = Promise.allSettled([
        ...Array.from({ length: 100 }, (_, n) => app.send(queue, n)),
        app.sendBatch(queue, [1, 2, 3]),
      ])
      await app.close()
      assert.deepEqual(new Set((await sent).map(({ status }) => status)), new Set(['fulfilled']))
      const counted = await pool.query(
        `SELECT count(*)::int AS n FROM ${pg.escapeIdentifier(schema)}.message`,
      )
      assert.deepEqual(counted.rows, [{ n: 104 }])
    } finally {
      await pool.end()
      await dropSchema(url, schema)
    }
  })
}
