import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { postgresInbox } from 'millrace/inbox'
import { postgresOutbox } from 'millrace/outbox'
import { postgres } from 'millrace/postgres'
import pg from 'pg'
import { z } from 'zod'
import { inboxContext } from './inbox-subjects.ts'
import { envelope, open, signal, take } from './postgres-bench.ts'
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

  test(`${name}: a close waits for no ack in a transaction that is still open, and gives back the rest at once`, async (t) => {
    const warnings: string[] = []
    const logger = { ...silentLogger, warn: (message: string) => void warnings.push(message) }
    const { transport, another, dispose } = await open(url, { logger })
    const pool = nodePool(url, 1)
    const tx = await pool.connect()
    t.after(async () => {
      tx.release(true)
      await pool.end()
      await dispose()
    })
    await transport.send('q', [envelope('a'), envelope('b')], { signal })
    const from = await transport.subscribe('q', { group: 'g', leaseMs: 60_000, maxInFlight: 2 })
    const held = await from.receive({ max: 2, waitMs: 5_000, signal })
    assert.equal(held.length, 2)
    await tx.query('BEGIN')
    const mine = await transport.transaction?.(tx)
    assert.deepEqual(await mine?.ack('q', held.slice(0, 1)), [{ ok: true }])
    await from.close()
    const lost = held.map(({ claim }) => claim.lost.aborted)
    assert.deepEqual([lost, warnings], [[false, true], []])
    const other = await another()
    const [back] = await take(other, 'q', 1)
    assert.equal(back?.envelope.id, held[1]?.envelope.id)
    await tx.query('COMMIT')
    const { depth, inFlight } = (await other.browse?.gauge('q')) ?? {}
    assert.deepEqual([depth, inFlight], [0, 1])
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

  test(`${name}: what refuses to open leaves no connection`, async () => {
    const ours = freshSchema()
    const named = new URL(url)
    named.searchParams.set('application_name', ours)
    const options = { url: named.href, schema: ours }
    const pool = nodePool(url, 1)
    const held = async (): Promise<number> => {
      const { rows } = await pool.query(
        'SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = $1',
        [ours],
      )
      return rows[0].n
    }
    const context = inboxContext({ migrate: 'check' })
    for (const part of [postgres(options), postgresInbox(options), postgresOutbox(options)]) {
      await assert.rejects(part.connect(context), { code: 'MILLRACE_SCHEMA_OUTDATED' })
      // A pool closes what is idle by itself after ten seconds.
      await until('the end of its connections', async () => (await held()) === 0, 5_000)
    }
    await pool.end()
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
