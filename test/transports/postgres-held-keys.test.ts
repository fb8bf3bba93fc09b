import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type App, createMillrace, defineQueue, hasCode, MillraceError } from 'millrace'
import { postgres } from 'millrace/postgres'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import { open, signal } from './postgres-bench.ts'
import {
  dropSchema,
  freshSchema,
  NO_SERVER,
  nodePool,
  postgresServers,
} from './postgres-servers.ts'
import { until } from './until.ts'

const servers = postgresServers()
if (servers.length === 0) test('postgres held keys', { skip: NO_SERVER }, () => {})

const queue = defineQueue({ name: 'q', owner: 'team', payload: z.number() })
const ordered = defineQueue({
  name: 'ordered',
  owner: 'team',
  payload: z.number(),
  orderingKey: () => 'k',
  onDead: 'continue',
})

/** An app on a pool of its own of few connections, and the open transaction of somebody. */
async function scene(t: TestContext, url: string, connections = 4) {
  const schema = freshSchema()
  const [pool, theirs] = [nodePool(url, connections), nodePool(url, 2)]
  const app = await createMillrace({
    transport: postgres({ pool, schema }),
    queues: [queue, ordered],
    logger: silentLogger,
  })
  const tx = await theirs.connect()
  t.after(async () => {
    tx.release(true)
    await app.close({ timeoutMs: 0 })
    await Promise.all([pool.end(), theirs.end()])
    await dropSchema(url, schema)
  })
  await tx.query('BEGIN')
  return { app, tx }
}

const depth = async (app: App, of: typeof queue | typeof ordered = queue) =>
  (await app.admin.stats(of)).depth

for (const { name, url } of servers) {
  test(`${name}: a key that an open transaction holds keeps waiting who asks for it, and nobody else`, async (t) => {
    const { app, tx } = await scene(t, url)
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
    assert.equal(await depth(app), 5)

    await tx.query('ROLLBACK')
    assert.equal((await held).duplicate, false)
    assert.equal(await depth(app), 6)
  })

  test(`${name}: however many sends wait for held keys, two connections wait with them, and health names what is wrong`, async (t) => {
    const { app, tx } = await scene(t, url)
    const keys = Array.from({ length: 20 }, (_, i) => `held-${i}`)
    for (const idempotencyKey of keys) await app.send(queue, 1, { tx, idempotencyKey })
    await app.send(ordered, 0, { tx })
    const ids: string[] = []
    const sends = [
      ...keys.map((idempotencyKey) => app.send(queue, 1, { idempotencyKey })),
      ...keys.map((key) => app.sendBatch(queue, [1, 2], { idempotencyKey: (n) => `${key}-${n}` })),
      ...keys.map((key) => app.sendBatch(queue, [1], { idempotencyKey: () => key })),
      ...[1, 2, 3].map((n) => app.send(ordered, n).then(({ id }) => ids.push(id))),
    ]
    const settled = Promise.allSettled(sends)
    // All have found out.
    await until('health to name it', async () =>
      (await app.health()).reasons.some((reason) => /open transaction holds/.test(reason)),
    )
    const { ok, reasons } = await app.health()
    assert.deepEqual([ok, reasons.length], [false, 1])
    assert.match(reasons[0] ?? '', /^queue "(q|ordered)": \d+ sends wait .* for \d+ s; look for/)
    let waiting = 0
    for (let n = 0; n < 50; n++) {
      await app.send(queue, 100 + n, n % 2 === 0 ? {} : { idempotencyKey: `free-${n}` })
      waiting = Math.max(waiting, await held(tx))
    }
    assert.ok(waiting <= 2, `${waiting} connections wait`)
    await tx.query('COMMIT')
    const outcomes = await settled
    assert.deepEqual(
      outcomes.filter(({ status }) => status === 'rejected'),
      [],
    )
    // 20 of the transaction, 40 of the batches with free keys, 50 beside; the others are duplicates.
    assert.equal(await depth(app), 110)
    assert.deepEqual([await depth(app, ordered), ids.length], [4, 3])
    assert.deepEqual(await app.health(), { ok: true, reasons: [] })
  })

  test(`${name}: sends of one held key go together once it is free, in their order`, async (t) => {
    const { app, tx } = await scene(t, url)
    await app.send(ordered, 0, { tx })
    const sends = Array.from({ length: 300 }, (_, n) => app.send(ordered, n + 1))
    await until('the first to wait', async () => (await held(tx)) > 0)
    await tx.query('COMMIT')
    await Promise.all(sends)
    const seen: number[] = []
    const all = Promise.withResolvers<void>()
    app.work(ordered, ({ payload }) => {
      if (seen.push(payload) === 301) all.resolve()
    })
    await app.start()
    await all.promise
    assert.deepEqual(
      seen,
      Array.from({ length: 301 }, (_, n) => n),
    )
  })

  test(`${name}: the transport answers that a key is held, after the time that it is given`, async (t) => {
    const [ours, pool] = [nodePool(url, 1), nodePool(url, 1)]
    const bench = await open(url, { address: { pool: ours }, listen: false })
    const tx = await pool.connect()
    t.after(async () => {
      tx.release(true)
      await bench.dispose()
      await Promise.all([ours.end(), pool.end()])
    })
    const { transport } = bench
    await tx.query('BEGIN')
    const theirs = await transport.transaction?.(tx)
    const remember = [
      { kind: 'dedupe', key: 'd', fingerprint: undefined, windowMs: 60_000 },
    ] as const
    const held = [
      { id: 'one' },
      { id: 'two', remember },
      { id: 'three', orderingKey: 'k' },
    ] as const
    const plain = { body: new Uint8Array(1), headers: {}, priority: 0 }
    await theirs?.send(
      'q',
      held.map((one) => ({ ...plain, ...one })),
    )
    for (const atomic of [false, true]) {
      for (const one of [{ id: 'one' }, { id: 'a', remember }, { id: 'b', orderingKey: 'k' }]) {
        const batch = [{ ...plain, ...one }]
        const [sent] = await transport.send('q', batch, { signal, atomic, lockMs: 10 })
        assert.equal(sent?.ok === false && sent.fault.code, 'held', JSON.stringify(one))
      }
    }
    const [free] = await transport.send('q', [{ ...plain, id: 'free' }], { signal, lockMs: 10 })
    assert.equal(free?.ok, true)
    // What was set for one statement is not for the next on the same connection.
    const [timeout] = (await ours.query('SHOW lock_timeout')).rows
    assert.equal(timeout?.lock_timeout, '0')
  })

  // As long as it takes, 20 s, on one of them.
  if (url !== servers[0]?.url) continue
  test(`${name}: a send whose key stays held ends within its time and says why; its signal and the end of the app end it sooner`, async (t) => {
    const { app, tx } = await scene(t, url)
    await app.send(queue, 1, { tx, idempotencyKey: 'held', id: 'one' })
    await app.send(ordered, 1, { tx })
    const why = async (sent: Promise<unknown>): Promise<string> => {
      const error: unknown = await sent.catch((cause: unknown) => cause)
      assert.ok(error instanceof MillraceError, String(error))
      assert.deepEqual([error.code, error.retryable], ['MILLRACE_UNAVAILABLE', true])
      return error.message
    }
    const abort = new AbortController()
    const aborted = app.send(queue, 1, { idempotencyKey: 'held', signal: abort.signal })
    const told = Promise.all([
      why(app.send(queue, 1, { idempotencyKey: 'held' })),
      why(app.send(queue, 1, { id: 'one' })),
      why(app.send(ordered, 1)),
      why(app.sendBatch(queue, [1, 2], { idempotencyKey: (n) => (n === 1 ? 'held' : 'free') })),
    ])
    abort.abort(new Error('enough'))
    await assert.rejects(aborted, /enough/)
    const [byKey = '', byId = '', byOrder = '', batch = ''] = await told
    assert.match(byKey, /idempotency key "held" is held by a transaction .*still open/)
    assert.match(byId, /id one is held/)
    assert.match(byOrder, /ordering key "k" is held/)
    assert.match(batch, /a key of the batch is held/)
    const last = assert.rejects(app.send(queue, 1, { idempotencyKey: 'held' }), (error: unknown) =>
      hasCode(error, 'MILLRACE_CLOSED'),
    )
    await app.send(queue, 2)
    await app.close()
    await last
  })
}

/** Backends of this schema that wait for a lock. */
async function held(tx: {
  query(sql: string): Promise<{ rows: { n: string }[] }>
}): Promise<number> {
  const { rows } = await tx.query(
    `SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pg_backend_pid() = ANY (pg_blocking_pids(pid))`,
  )
  return Number(rows[0]?.n)
}
