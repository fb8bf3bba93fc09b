import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { type PostgresOptions, postgres } from 'millrace/postgres'
import { z } from 'zod'
import {
  dropSchema,
  freshSchema,
  jsPool,
  NO_SERVER,
  nodePool,
  postgresServers,
} from './postgres-servers.ts'

const [server] = postgresServers()
const queue = defineQueue({ name: 'orders', owner: 'team', payload: z.string() })
if (server === undefined) test('facts of postgres clients', { skip: NO_SERVER }, () => {})
else
  test('what postgres.js can do to a process is a fact of the backend, and pg has none', async (t) => {
    const factsOf = async (address: Pick<PostgresOptions, 'pool'>): Promise<readonly string[]> => {
      const schema = freshSchema()
      t.after(() => dropSchema(server.url, schema))
      const transport = postgres({ pool: address.pool ?? assert.fail('no pool'), schema })
      const app = await createMillrace({ transport, queues: [queue], logger: silentLogger })
      const { facts } = await app.admin.backend()
      await app.close()
      return facts
    }
    const sql = jsPool(server.url, 3)
    t.after(() => sql.end())
    const [fact = '', ...more] = await factsOf({ pool: sql })
    assert.match(fact, /^postgres\.js .* can end this process .*; a Pool of pg stays up$/)
    assert.deepEqual(more, [])
    const pool = nodePool(server.url)
    t.after(() => pool.end())
    assert.deepEqual(await factsOf({ pool }), [])
  })
