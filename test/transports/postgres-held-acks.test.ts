import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type App, createMillrace, defineQueue, PermanentError } from 'millrace'
import { postgresInbox } from 'millrace/inbox'
import { postgres } from 'millrace/postgres'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import { envelope, open, signal } from './postgres-bench.ts'
import {
  dropSchema,
  freshSchema,
  NO_SERVER,
  nodePool,
  postgresServers,
} from './postgres-servers.ts'
import { until } from './until.ts'

const servers = postgresServers()
if (servers.length === 0) test('postgres held acks', { skip: NO_SERVER }, () => {})

const ordered = {
  owner: 'team',
  payload: z.object({ key: z.string(), n: z.number() }),
  orderingKey: ({ key }: { key: string }) => key,
  onDead: 'continue',
} as const
/** Leases of five seconds and a bit. */
const queue = defineQueue({ ...ordered, name: 'q', handlerTimeoutMs: 100 })
const effects = defineQueue({ ...ordered, name: 'effects' })

const heads = Array.from({ length: 25 }, (_, i) => `held-${i}`)

/** Two slots; heads of all these keys are handled while somebody's open transaction has sent to their keys. */
async function scene(t: TestContext, url: string) {
  const schema = freshSchema()
  const [pool, theirs] = [nodePool(url, 4), nodePool(url, 2)]
  const app = await createMillrace({
    transport: postgres({ pool, schema }),
    queues: [queue],
    logger: silentLogger,
  })
  const tx = await theirs.connect()
  t.after(async () => {
    tx.release(true)
    await app.close({ timeoutMs: 0 })
    await Promise.all([pool.end(), theirs.end()])
    await dropSchema(url, schema)
  })
  await app.sendBatch(
    queue,
    heads.map((key) => ({ key, n: 1 })),
  )
  await tx.query('BEGIN')
  for (const key of heads) await app.send(queue, { key, n: 2 }, { tx })
  const runs: string[] = []
  app.work(
    queue,
    ({ payload: { key, n }, attempt }) => {
      runs.push(`${key} ${n} ${attempt}`)
      if (key === 'held-0') throw new PermanentError('dies')
    },
    { concurrency: 2 },
  )
  /** From a connection that is not the app's. */
  const ask = async (what: string): Promise<unknown> => {
    const { rows } = await theirs.query(
      `SELECT ${what} AS answer FROM "${schema.replaceAll('"', '""')}".message AS message`,
    )
    return rows[0]?.answer
  }
  const left = async (): Promise<number> => Number(await ask('count(*)'))
  return { app, tx, schema, theirs, runs, ask, left }
}

async function sendBeside(
  app: App,
  from: number,
  to: typeof queue = queue,
): Promise<readonly string[]> {
  const numbers = Array.from({ length: 40 }, (_, i) => from + i)
  await app.sendBatch(
    to,
    numbers.map((n) => ({ key: `free-${n % 7}`, n })),
  )
  return numbers.map((n) => `free-${n % 7} ${n} 1`)
}

for (const { name, url } of servers) {
  test(`${name}: messages that cannot be settled for an open transaction keep no other key waiting, for longer than a lease, and come once`, async (t) => {
    const { app, tx, theirs, schema, runs, ask, left } = await scene(t, url)
    await app.start()
    const expected = heads.map((key) => `${key} 1 1`)
    await until('all heads to be handled', () => runs.length === heads.length)
    const first = await theirs.query(
      `SELECT max(expires_at)::text AS ends FROM "${schema.replaceAll('"', '""')}".claim`,
    )
    expected.push(...(await sendBeside(app, 0)))
    await until('the others to be acked', async () => (await left()) === heads.length)
    await until('health to name it', async () => !(await app.health()).ok)
    const { reasons } = await app.health()
    assert.equal(reasons.length, 1)
    assert.match(
      reasons[0] ?? '',
      /^queue "q": 25 handled messages wait to be settled, because an open transaction holds .*\(key "held-\d+"\) for \d+ s/,
    )
    await until('their first leases to be over', async () => {
      const ends = String(first.rows[0]?.ends)
      return (
        (await ask(`clock_timestamp() > '${ends}'::timestamptz + interval '1 second'`)) === true
      )
    })
    expected.push(...(await sendBeside(app, 100)))
    await until('those to be acked, too', async () => (await left()) === heads.length)
    assert.deepEqual(runs.toSorted(), expected.toSorted())

    await tx.query('COMMIT')
    await until('all to be settled', async () => (await left()) === 0)
    const { items } = await app.admin.deadLetters.list(queue)
    assert.equal(items.length, 2)
    assert.deepEqual(runs.toSorted(), [...expected, ...heads.map((key) => `${key} 2 1`)].toSorted())
    for (const key of heads) {
      const order = runs.filter((run) => run.startsWith(`${key} `))
      assert.deepEqual(order, [`${key} 1 1`, `${key} 2 1`])
    }
    assert.deepEqual(await app.health(), { ok: true, reasons: [] })
  })

  test(`${name}: a close with a key that an open transaction holds acks all others, in its time`, async (t) => {
    const { app, tx, runs, ask, left } = await scene(t, url)
    await app.start()
    await until('all heads to be handled', () => runs.length === heads.length)
    await sendBeside(app, 0)
    await until('the others to be handled', () => runs.length === heads.length + 40)
    const closed = app.close({ timeoutMs: 1_000 })
    await until('the others to be acked', async () => (await left()) === heads.length)
    await closed
    assert.equal(await left(), heads.length)
    // Given back, so that others need not wait for the end of a lease.
    assert.equal(Number(await ask('count(*) FILTER (WHERE state = 0)')), heads.length)
    await tx.query('ROLLBACK')
  })

  test(`${name}: an effect that waits for a held key keeps no other key waiting, and commits once`, async (t) => {
    const schema = freshSchema()
    const [pool, theirs] = [nodePool(url, 4), nodePool(url, 2)]
    const inbox = postgresInbox({ pool, schema })
    const app = await createMillrace({
      ...{ transport: postgres({ pool, schema }), queues: [effects], inbox, logger: silentLogger },
    })
    const tx = await theirs.connect()
    t.after(async () => {
      tx.release(true)
      await app.close({ timeoutMs: 0 })
      await Promise.all([pool.end(), theirs.end()])
      await dropSchema(url, schema)
    })
    await app.send(effects, { key: 'held', n: 1 })
    await tx.query('BEGIN')
    await app.send(effects, { key: 'held', n: 2 }, { tx })
    const committed: string[] = []
    let begun = false
    app.work(effects, async ({ payload: { key, n }, attempt }, ctx) => {
      if (key === 'held') begun = true
      await ctx.tx(() => {})
      committed.push(`${key} ${n} ${attempt}`)
    })
    await app.start()
    await until('the head to begin', () => begun)
    const beside = await sendBeside(app, 0, effects)
    await until('the others to be committed', () => committed.length === beside.length)
    assert.deepEqual(committed.toSorted(), beside.toSorted())
    await tx.query('COMMIT')
    await until('the key to go on', () => committed.length === beside.length + 2)
    assert.deepEqual(committed.slice(-2), ['held 1 1', 'held 2 1'])
  })

  test(`${name}: a settlement answers that its key is held, is still ours, and settles its neighbours`, async (t) => {
    const [pool] = [nodePool(url, 1)]
    const bench = await open(url, { listen: false })
    const { transport } = bench
    const tx = await pool.connect()
    t.after(async () => {
      tx.release(true)
      await bench.dispose()
      await pool.end()
    })
    const all = ['held', 'also-held', 'free'].map((orderingKey) =>
      envelope(orderingKey, { orderingKey }),
    )
    await transport.send('q', [...all, envelope('plain')], { signal })
    const options = { group: 'g', leaseMs: 60_000, maxInFlight: 4 }
    const subscription = await transport.subscribe('q', options)
    const taken = await subscription.receive({ max: 4, waitMs: 0, signal })
    await tx.query('BEGIN')
    const theirs = await transport.transaction?.(tx)
    await theirs?.send('q', [
      envelope('h2', { orderingKey: 'held' }),
      envelope('a2', { orderingKey: 'also-held' }),
    ])
    const by = (id: string) => {
      const found = taken.find((delivery) => delivery.envelope.id === id)
      assert.ok(found)
      return found
    }
    const codes = async (ids: readonly string[], as: 'acked' | 'dead') => {
      const why = { errorClass: 'permanent', reason: 'dies' } as const
      const settled = await subscription.settle(
        ids.map((id) =>
          as === 'dead' ? { as, delivery: by(id), ...why } : { as, delivery: by(id) },
        ),
      )
      return settled.map((one) => (one.ok ? 'ok' : one.fault.code))
    }
    assert.deepEqual(await codes(['held'], 'acked'), ['held'])
    assert.deepEqual(await codes(['also-held'], 'dead'), ['held'])
    assert.deepEqual(await codes(['held', 'plain', 'also-held', 'free'], 'acked'), [
      ...['held', 'ok', 'held', 'ok'],
    ])
    assert.equal(by('held').claim.lost.aborted, false)
    const renewed = await subscription.renew?.([by('held'), by('also-held')], 60_000)
    assert.deepEqual(renewed, [{ ok: true }, { ok: true }])
    await tx.query('COMMIT')
    assert.deepEqual(await codes(['held'], 'acked'), ['ok'])
    assert.deepEqual(await codes(['also-held'], 'dead'), ['ok'])
    await subscription.close()
  })

  test(`${name}: a settlement whose message itself is locked by somebody is held, not lost`, async (t) => {
    const [pool] = [nodePool(url, 1)]
    const bench = await open(url, { listen: false })
    const { transport, schema } = bench
    const tx = await pool.connect()
    t.after(async () => {
      tx.release(true)
      await bench.dispose()
      await pool.end()
    })
    await transport.send('q', [envelope('one', { orderingKey: 'k' })], { signal })
    const options = { group: 'g', leaseMs: 60_000, maxInFlight: 1 }
    const subscription = await transport.subscribe('q', options)
    const [delivery] = await subscription.receive({ max: 1, waitMs: 0, signal })
    assert.ok(delivery)
    await tx.query('BEGIN')
    await tx.query(`SELECT 1 FROM "${schema.replaceAll('"', '""')}".message FOR UPDATE`)
    const [locked] = await subscription.settle([{ as: 'acked', delivery }])
    assert.equal(locked?.ok === false && locked.fault.code, 'held')
    assert.equal(delivery.claim.lost.aborted, false)
    await tx.query('ROLLBACK')
    assert.deepEqual(await subscription.settle([{ as: 'acked', delivery }]), [{ ok: true }])
    await subscription.close()
  })
}
