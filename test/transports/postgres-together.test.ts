import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { postgres } from 'millrace/postgres'
import { z } from 'zod'
import {
  dropSchema,
  freshSchema,
  NO_SERVER,
  nodePool,
  postgresServers,
} from './postgres-servers.ts'

const [server] = postgresServers()
if (server === undefined) test('sends that come together', { skip: NO_SERVER }, () => {})
else {
  test('sends that come together in a new transaction never give pg a second query at once', async () => {
    const schema = freshSchema()
    const pool = nodePool(server.url)
    const queue = defineQueue({ name: 'together', owner: 'team', payload: z.number() })
    const other = defineQueue({ name: 'other', owner: 'team', payload: z.number() })
    const transport = postgres({ url: server.url, schema })
    const app = await createMillrace({ transport, queues: [queue, other], logger: silentLogger })
    const client = await pool.connect()
    let running = 0
    let most = 0
    const counted = new Proxy(client, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        if (name !== 'query') return value.bind(target)
        return async (...args: readonly unknown[]) => {
          most = Math.max(most, ++running)
          try {
            return await Reflect.apply(value, target, args)
          } finally {
            running--
          }
        }
      },
    })
    try {
      await client.query('BEGIN')
      const both = (n: number): readonly Promise<unknown>[] => [
        app.send(queue, n, { tx: counted }),
        app.send(other, n, { tx: counted }),
      ]
      await Promise.all([1, 2, 3].flatMap(both))
      await Promise.all([4, 5].flatMap(both))
      await client.query('COMMIT')
      assert.equal(most, 1)
      assert.equal((await app.admin.stats(queue)).depth, 5)
      assert.equal((await app.admin.stats(other)).depth, 5)
    } finally {
      client.release()
      await app.close({ timeoutMs: 0 })
      await pool.end()
      await dropSchema(server.url, schema)
    }
  })
}
