import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
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
import { until } from './until.ts'

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

  /** Locks what a start asks for, until `free`. */
  const heldUp = async (schema: string) => {
    const pool = nodePool(url, 2)
    const client = await pool.connect()
    const table = `${pg.escapeIdentifier(schema)}.queue`
    await client.query('BEGIN')
    await client.query(`LOCK TABLE ${table}`)
    const isWaitedFor = async (): Promise<boolean> => {
      const { rows } = await pool.query(
        'SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted AND relation = $1::regclass',
        [table],
      )
      return rows[0].n > 0
    }
    return {
      reached: () => until('a start that waits', isWaitedFor),
      free: async (): Promise<void> => {
        client.release(true)
        await pool.end()
        await dropSchema(url, schema)
      },
    }
  }

  test(`${name}: a start that a close cuts off is closed, not a backend that is away`, async (t) => {
    const schema = freshSchema()
    const transport = postgres({ url, schema })
    const app = await createMillrace({ transport, queues: [queue], logger: silentLogger })
    app.work(queue, () => undefined)
    const held = await heldUp(schema)
    t.after(held.free)
    const starting = assert.rejects(app.start(), { code: 'MILLRACE_CLOSED', retryable: false })
    await held.reached()
    await app.close()
    await starting
  })

  test(`${name}: SIGTERM during a start ends the process with 0`, async (t) => {
    const schema = freshSchema()
    const starter = join(import.meta.dirname, 'postgres-starter.ts')
    const child = spawn(process.execPath, [...process.execArgv, starter, url, schema])
    t.after(() => child.kill('SIGKILL'))
    let said = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        said += String(chunk)
      })
    }
    await until('an open app', () => said.includes('open'))
    const held = await heldUp(schema)
    t.after(held.free)
    child.stdin.end('go')
    await held.reached()
    child.kill('SIGTERM')
    assert.deepEqual(await once(child, 'close'), [0, null], said)
  })
}
