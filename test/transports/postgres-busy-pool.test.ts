import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, hasCode, silentLogger } from 'millrace'
import { postgresInbox } from 'millrace/inbox'
import { postgres } from 'millrace/postgres'
import type { Pool } from 'pg'
import { z } from 'zod'
import {
  dropSchema,
  freshSchema,
  NO_SERVER,
  nodePool,
  postgresServers,
} from './postgres-servers.ts'
import { until } from './until.ts'

const [server] = postgresServers()
if (server === undefined) test('a pool all of which is in use', { skip: NO_SERVER }, () => {})
else {
  const orders = defineQueue({ name: 'orders', owner: 'team', payload: z.number() })
  const mails = defineQueue({ name: 'mails', owner: 'team', payload: z.number() })
  const few = defineQueue({
    name: 'few',
    owner: 'team',
    payload: z.number(),
    capacity: { maxDepth: 8, whenFull: 'reject' },
  })

  const opened = async (t: TestContext, pool: Pool, schema: string) => {
    const app = await createMillrace({
      transport: postgres({ pool, schema }),
      inbox: postgresInbox({ pool, schema }),
      queues: [orders, mails, few],
      logger: silentLogger,
    })
    t.after(() => app.close({ timeoutMs: 0 }))
    return app
  }
  const stage = (t: TestContext, connections: number) => {
    const schema = freshSchema()
    const pool = nodePool(server.url, connections)
    t.after(async () => {
      await pool.end()
      await dropSchema(server.url, schema)
    })
    return { schema, pool }
  }
  type Opened = Awaited<ReturnType<typeof opened>>
  const sendWithin = async (
    app: Opened,
    pool: Pool,
    queue: typeof mails,
    begun = async () => {},
  ) => {
    const tx = await pool.connect()
    try {
      await tx.query('BEGIN')
      await begun()
      await app.send(queue, 1, { tx })
      await tx.query('COMMIT')
    } finally {
      await tx.query('ROLLBACK')
      tx.release()
    }
  }

  test('sends inside transactions that hold every connection of the pool need no other one', async (t) => {
    const { pool, schema } = stage(t, 3)
    const app = await opened(t, pool, schema)
    let open = 0
    const allBegun = async (): Promise<void> => {
      open += 1
      await until('all of them', () => open === 3)
    }
    let sent = 0
    const all = [1, 2, 3].map(() =>
      sendWithin(app, pool, mails, allBegun).then(() => {
        sent += 1
      }),
    )
    await until('all sends', () => sent === 3, 5_000)
    await Promise.all(all)
    assert.equal((await app.admin.stats(mails)).depth, 3)
  })

  test('handlers that send inside ctx.tx get along with fewer connections than run at once', async (t) => {
    const { pool, schema } = stage(t, 4)
    const app = await opened(t, pool, schema)
    let done = 0
    let mailed = 0
    const attempts = new Set<number>()
    app.work(
      orders,
      async ({ payload, attempt }, ctx) => {
        attempts.add(attempt)
        await ctx.tx(async (tx) => {
          await tx.query('SELECT 1')
          await ctx.send(mails, payload)
        })
        done += 1
      },
      { concurrency: 8 },
    )
    app.work(mails, () => {
      mailed += 1
    })
    await app.sendBatch(orders, [...Array(40).keys()])
    await app.start()
    await until('all of them', () => done >= 40 && mailed >= 40, 15_000)
    assert.deepEqual([...attempts], [1])
  })

  test('a full queue is full inside a transaction, too, from the first look on', async (t) => {
    const { pool, schema } = stage(t, 4)
    const sender = await opened(t, pool, schema)
    await sender.sendBatch(few, [...Array(8).keys()])
    const fresh = await opened(t, pool, schema)
    let beyond = 0
    await until('a refusal', async () => {
      try {
        await sendWithin(fresh, pool, few)
        beyond += 1
        return false
      } catch (error) {
        if (!hasCode(error, 'MILLRACE_QUEUE_FULL')) throw error
        return true
      }
    })
    t.diagnostic(`${beyond} were stored before the first look`)
    assert.ok(beyond < 8, `${beyond} beyond`)
  })
}
