import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { createMillrace, defineQueue } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { sqlite } from 'millrace/sqlite'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import { inboxContext, sqliteInboxClients } from './inbox-subjects.ts'
import { databaseFile } from './sqlite-harness.ts'
import { until } from './until.ts'

const key = { queue: 'orders', key: 'a' }
const INSERT = 'INSERT INTO effect VALUES (?)'

for (const { name, open } of sqliteInboxClients) {
  test(`${name}: an asynchronous effect is refused with the reason, and what it did is undone`, async () => {
    const subject = await open()
    const inbox = await subject.connect()
    const refused = inbox.run(key, {
      leaseMs: 10_000,
      effect: async (tx) => {
        await subject.effect(tx, 1)
        throw new Error('nobody sees this')
      },
      last: () => true,
    })
    await assert.rejects(refused, (error: Error) => {
      assert.match(error.message, /synchronous/)
      return 'code' in error && error.code === 'MILLRACE_TX_ASYNC'
    })
    assert.deepEqual(await subject.effects(), [])
    assert.deepEqual(await inbox.seen([key]), [false])
    await inbox.close()
    await subject.dispose()
  })
}

test('sqlite: the event loop turns between effects that take long, and what is over by then is not begun', async () => {
  const { file, dispose } = await databaseFile()
  const inbox = await sqliteInbox({ file }).connect(inboxContext())
  const stopped = new AbortController()
  let turn = 0
  const count = (): void => {
    turn += 1
    if (!stopped.signal.aborted) setImmediate(count)
  }
  count()
  const turns: number[] = []
  const isOver = new Set([3, 4])
  const outcomes = await Promise.all(
    Array.from({ length: 6 }, (_, n) =>
      inbox.run(
        { queue: 'orders', key: `${n}` },
        {
          leaseMs: 10_000,
          isOver: () => isOver.has(n),
          effect: () => {
            turns.push(turn)
            // Longer than all effects of one turn may take together.
            for (const until = performance.now() + 15; performance.now() < until; );
          },
          last: () => true,
        },
      ),
    ),
  )
  stopped.abort()
  assert.equal(new Set(turns).size, 4, turns.join())
  const kinds = outcomes.map(({ kind }) => (kind === 'committed' ? 'c' : kind)).join(' ')
  assert.equal(kinds, 'c c c lost lost c')
  await inbox.close()
  await dispose()
})

for (const open of [
  (file: string) => new DatabaseSync(file),
  (file: string) => new Database(file),
]) {
  const db = open(':memory:')
  test(`sqlite: ${db.constructor.name}: a run waits for the transaction that the user has open`, async () => {
    db.close()
    const { file, dispose } = await databaseFile()
    const own = open(file)
    own.exec('CREATE TABLE effect (n INTEGER NOT NULL)')
    const inbox = await sqliteInbox({ db: own }).connect(inboxContext())
    own.exec('BEGIN IMMEDIATE')
    own.prepare(INSERT).run(1)
    let called = false
    const running = inbox.run(key, {
      leaseMs: 10_000,
      effect: (tx) => {
        called = true
        tx.prepare(INSERT).run(2)
      },
      last: () => true,
    })
    let turns = 0
    await until('the event loop to turn', () => ++turns > 20)
    assert.equal(called, false)
    own.exec('ROLLBACK')
    assert.equal((await running).kind, 'committed')
    assert.deepEqual(
      own
        .prepare('SELECT n FROM effect')
        .all()
        .map((row) => ({ ...(row as object) })),
      [{ n: 2 }],
    )
    await inbox.close()
    own.close()
    await dispose()
  })

  test(`sqlite: ${db.constructor.name}: a lock of somebody else is waited for without blocking the process`, async () => {
    const { file, dispose } = await databaseFile()
    const own = open(file)
    own.exec('PRAGMA busy_timeout = 60000')
    const inbox = await sqliteInbox({ db: own }).connect(inboxContext())
    const other = open(file)
    other.exec('BEGIN IMMEDIATE')
    const running = inbox.run(key, { leaseMs: 10_000, effect: () => 1, last: () => true })
    let turns = 0
    await until('the event loop to turn', () => ++turns > 20)
    other.exec('COMMIT')
    assert.deepEqual(await running, { kind: 'committed', value: 1 })
    assert.deepEqual(
      { ...(own.prepare('PRAGMA busy_timeout').get() as object) },
      { timeout: 60_000 },
    )
    await inbox.close()
    other.close()
    own.close()
    await dispose()
  })
}

test('sqlite: an effect that sets a timeout on a handle of ours does not make the next one block the process', async () => {
  const { file, dispose } = await databaseFile()
  const inbox = await sqliteInbox({ file }).connect(inboxContext())
  const patient = (tx: DatabaseSync): void => tx.exec('PRAGMA busy_timeout = 5000')
  await inbox.run(key, { leaseMs: 10_000, effect: patient, last: () => true })
  const other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  const next = { ...key, key: 'next' }
  const running = inbox.run(next, { leaseMs: 10_000, effect: () => 1, last: () => true })
  let turns = 0
  await until('the event loop to turn', () => ++turns > 20)
  other.exec('COMMIT')
  assert.deepEqual(await running, { kind: 'committed', value: 1 })
  other.close()
  await inbox.close()
  await dispose()
})

test('sqlite: nobody waits for a lock longer than the lease, and then nothing has happened', async () => {
  const { file, dispose } = await databaseFile()
  const inbox = await sqliteInbox({ file }).connect(inboxContext())
  const other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  let called = 0
  const waiting = inbox.run(key, { leaseMs: 40, effect: () => ++called, last: () => true })
  await assert.rejects(waiting, {
    code: 'MILLRACE_UNAVAILABLE',
    retryable: true,
    fields: { busyTimeoutMs: 40 },
  })
  assert.equal(called, 0)
  other.close()
  await inbox.close()
  await dispose()
})

test('sqlite: an effect is called once, also when it runs into a lock itself', async () => {
  const { file, dispose } = await databaseFile()
  const inbox = await sqliteInbox({ file }).connect(inboxContext())
  const elsewhere = await databaseFile()
  const holder = new DatabaseSync(elsewhere.file)
  holder.exec('BEGIN IMMEDIATE')
  const other = new DatabaseSync(elsewhere.file, { timeout: 0 })
  let called = 0
  const failing = inbox.run(key, {
    leaseMs: 10_000,
    effect: () => {
      called += 1
      other.exec('BEGIN IMMEDIATE')
    },
    last: () => true,
  })
  await assert.rejects(failing, { errcode: 5 })
  assert.equal(called, 1)
  other.close()
  holder.close()
  await inbox.close()
  await dispose()
  await elsewhere.dispose()
})

test('sqlite: wrong options are named at once', () => {
  const refused = (options: object, what: RegExp): void =>
    assert.throws(
      () => sqliteInbox(options as { file: string }),
      (error: Error) => what.test(error.message),
    )
  refused({}, /either file or db/)
  refused({ file: ':memory:' }, /pass a handle as db/)
  refused({ file: 'a', ttl: 1 }, /unknown option "ttl"/)
  refused({ db: {} }, /DatabaseSync/)
  refused({ file: 'a', ttlMs: -1 }, /ttlMs/)
  refused({ file: 'a', synchronous: 'off' }, /synchronous/)
})

test('sqlite: queue and effect in one file commit together, and a duplicate does nothing', async (t) => {
  const { file, dispose } = await databaseFile()
  const db = new DatabaseSync(file)
  db.exec('CREATE TABLE paid (orderId TEXT NOT NULL)')
  const orders = defineQueue({
    name: 'orders',
    owner: 'team-shop',
    payload: z.object({ orderId: z.string() }),
    idempotencyKey: ({ orderId }) => orderId,
  })
  const app = await createMillrace({
    transport: sqlite({ db }),
    queues: [orders],
    inbox: sqliteInbox({ db }),
    logger: silentLogger,
  })
  t.after(async () => {
    await app.close()
    db.close()
    await dispose()
  })
  app.work(orders, async (message, ctx) => {
    await ctx.tx(
      (tx) => void tx.prepare('INSERT INTO paid VALUES (?)').run(message.payload.orderId),
    )
  })
  await app.start()
  await app.sendBatch(orders, [{ orderId: 'o-1' }, { orderId: 'o-1' }, { orderId: 'o-2' }])
  await until('all to be done', async () => {
    const { depth, inFlight } = await app.admin.stats(orders)
    return depth === 0 && inFlight === 0
  })
  const paid = db
    .prepare('SELECT orderId FROM paid ORDER BY orderId')
    .all()
    .map((row) => row['orderId'])
  assert.deepEqual(paid, ['o-1', 'o-2'])
})

for (const [client, open] of [
  ['node:sqlite', (file: string) => new DatabaseSync(file)],
  ['better-sqlite3', (file: string) => new Database(file)],
] as const) {
  test(`sqlite: ${client}: an effect for which the disk is too small throws that, and leaves nothing`, async () => {
    const { file, dispose } = await databaseFile()
    const own = open(file)
    own.exec('CREATE TABLE effect (bytes BLOB)')
    const inbox = await sqliteInbox({ db: own }).connect(inboxContext())
    const pages = Object(own.prepare('PRAGMA page_count').get())['page_count']
    own.exec(`PRAGMA max_page_count = ${pages + 3}`)
    // SQLite itself has rolled back when this is thrown.
    const full = inbox.run(key, {
      leaseMs: 10_000,
      effect: (tx) => tx.prepare('INSERT INTO effect VALUES (zeroblob(1000000))').run(),
      last: () => true,
    })
    await assert.rejects(full, /full/)
    assert.deepEqual(await inbox.seen([key]), [false])
    const small = await inbox.run(key, {
      leaseMs: 10_000,
      effect: (tx) => tx.prepare('INSERT INTO effect VALUES (zeroblob(1))').run(),
      last: () => true,
    })
    assert.equal(small.kind, 'committed')
    assert.equal(Object(own.prepare('SELECT count(*) AS n FROM effect').get())['n'], 1)
    await inbox.close()
    own.close()
    await dispose()
  })
}

test('sqlite: nothing of an asynchronous function given to ctx.tx runs', async () => {
  const { file, dispose } = await databaseFile()
  const db = new DatabaseSync(file)
  const orders = defineQueue({ name: 'orders', owner: 'team-shop', payload: z.object({}) })
  const app = await createMillrace({
    transport: sqlite({ db }),
    queues: [orders],
    inbox: sqliteInbox({ db }),
    logger: silentLogger,
  })
  let called = false
  const refused = Promise.withResolvers<unknown>()
  app.work(orders, async (_message, ctx) => {
    await ctx
      .tx(async () => {
        called = true
      })
      .catch(refused.resolve)
  })
  await app.start()
  await app.send(orders, {})
  const error = await refused.promise
  assert.ok(error instanceof Error && 'code' in error)
  assert.equal(error.code, 'MILLRACE_TX_ASYNC')
  assert.equal(called, false)
  await app.close()
  db.close()
  await dispose()
})
