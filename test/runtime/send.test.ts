import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import {
  type Connector,
  createMillrace,
  defineQueue,
  hasCode,
  InvalidPayloadError,
  MillraceError,
  QueueFullError,
} from 'millrace'
import { memory } from 'millrace/memory'
import { sqlite } from 'millrace/sqlite'
import pg from 'pg'
import postgresJs from 'postgres'
import { z } from 'zod'
import type { Envelope } from '../../src/model/envelope.ts'
import { closeNow, orderSchema, stage } from './stage.ts'

const code = (expected: string) => (error: unknown) => {
  assert.ok(
    hasCode(error, expected as MillraceError['code']),
    `expected ${expected}, got ${String(error)}`,
  )
  assert.ok(!String(error instanceof Error && error.message).includes('\n'), 'one line')
  return true
}

test('the same idempotency key and payload answers the first id; another payload is a conflict', async () => {
  const { app, clock, queue } = await stage()
  const first = await app.send(queue, { orderId: 'a' }, { idempotencyKey: 'k' })
  const again = await app.send(queue, { orderId: 'a' }, { idempotencyKey: 'k' })
  assert.deepEqual(again, { id: first.id, duplicate: true })
  await assert.rejects(
    app.send(queue, { orderId: 'b' }, { idempotencyKey: 'k' }),
    code('MILLRACE_IDEMPOTENCY_CONFLICT'),
  )
  assert.equal((await app.admin.stats(queue)).depth, 1)
  await clock.advance(86_400_001)
  const later = await app.send(queue, { orderId: 'b' }, { idempotencyKey: 'k' })
  assert.equal(later.duplicate, false)
  await closeNow(app, clock)
})

test('a dedupe key ignores the payload', async () => {
  const { app, clock, queue } = await stage()
  const first = await app.send(queue, { orderId: 'a' }, { dedupeKey: 'k' })
  const again = await app.send(queue, { orderId: 'b' }, { dedupeKey: 'k' })
  assert.deepEqual(again, { id: first.id, duplicate: true })
  await closeNow(app, clock)
})

test('sending again with the same id stores once', async () => {
  const { app, clock, queue } = await stage()
  const first = await app.send(queue, { orderId: 'a' }, { id: 'my-own-id' })
  const again = await app.send(queue, { orderId: 'a' }, { id: 'my-own-id' })
  assert.deepEqual([first.duplicate, again], [false, { id: 'my-own-id', duplicate: true }])
  assert.equal((await app.admin.stats(queue)).depth, 1)
  await closeNow(app, clock)
})

test('a wrong payload is refused with its issues, in a batch with its index, and nothing is stored', async () => {
  const { app, clock, queue } = await stage()
  const wrong = { orderId: 7 } as unknown as { orderId: string }
  await assert.rejects(app.send(queue, wrong), (error: unknown) => {
    code('MILLRACE_INVALID_PAYLOAD')(error)
    const { issues } = error as { issues: readonly { path: string }[] }
    assert.equal(issues[0]?.path, 'orderId')
    return true
  })
  await assert.rejects(app.sendBatch(queue, [{ orderId: 'a' }, wrong]), (error: unknown) => {
    code('MILLRACE_INVALID_PAYLOAD')(error)
    assert.equal((error as { index: number }).index, 1)
    return true
  })
  assert.equal((await app.admin.stats(queue)).depth, 0)
  await closeNow(app, clock)
})

test('a batch whose schema answers late stores in order; what nobody waits for any more is not left to end the process', async () => {
  const { app, clock, queue, open } = await stage()
  const late = {
    ...queue,
    schema: z.object({ orderId: z.string().refine(async (id) => id !== '') }),
  }
  const slow = await open({ queues: [late] })
  const stored = await slow.sendBatch(late, [{ orderId: 'a' }, { orderId: 'b' }])
  const ids = stored.map(({ id }) => id)
  assert.deepEqual(ids, [...new Set(ids)].sort())
  // The first is refused by the schema, later; the second at once.
  const batch = [{ orderId: '' }, { orderId: 1n }] as unknown as readonly { orderId: string }[]
  await assert.rejects(slow.sendBatch(late, batch), code('MILLRACE_UNSERIALIZABLE_PAYLOAD'))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal((await app.admin.stats(queue)).depth, 2)
  await closeNow(slow, clock)
  await closeNow(app, clock)
})

test('a batch of which the schema answers some late keeps its order', async () => {
  const { app, clock, queue, open } = await stage()
  const { validate, ...standard } = queue.schema['~standard']
  const some = {
    ...queue,
    schema: {
      '~standard': {
        ...standard,
        validate: (value: unknown) => {
          const isLate = (value as { orderId: string }).orderId.startsWith('late')
          return isLate ? Promise.resolve(validate(value)) : validate(value)
        },
      },
    },
  }
  const slow = await open({ queues: [some] })
  const names = ['a', 'late b', 'c', 'late d']
  const sent = await slow.sendBatch(
    some,
    names.map((orderId) => ({ orderId })),
  )
  const stored = await Promise.all(sent.map(({ id }) => app.admin.messages.get(queue, id)))
  assert.deepEqual(
    stored.map((message) => message?.payload),
    names.map((orderId) => ({ orderId })),
  )
  await closeNow(slow, clock)
  await closeNow(app, clock)
})

test('a batch is all or nothing: one conflict stores none', async () => {
  const { app, clock, queue } = await stage()
  await app.send(queue, { orderId: 'x' }, { idempotencyKey: 'k-1' })
  await assert.rejects(
    app.sendBatch(queue, [{ orderId: 'a' }, { orderId: 'b' }], {
      idempotencyKey: (_payload, index) => `k-${index}`,
    }),
    code('MILLRACE_IDEMPOTENCY_CONFLICT'),
  )
  assert.equal((await app.admin.stats(queue)).depth, 1)
  const results = await app.sendBatch(queue, [{ orderId: 'a' }, { orderId: 'b' }])
  assert.equal(new Set(results.map((result) => result.id)).size, 2)
  assert.deepEqual(await app.sendBatch(queue, []), [])
  await closeNow(app, clock)
})

test('a full queue rejects with when to come back, and the reject stores nothing', async () => {
  const { app, clock, queue } = await stage({ queue: { capacity: { maxDepth: 3 } } })
  for (const orderId of ['a', 'b', 'c']) await app.send(queue, { orderId })
  await assert.rejects(app.send(queue, { orderId: 'd' }), (error: unknown) => {
    code('MILLRACE_QUEUE_FULL')(error)
    assert.ok(error instanceof QueueFullError && error.retryAfterMs >= 1_000)
    return true
  })
  await assert.rejects(app.sendBatch(queue, [{ orderId: 'e' }]), code('MILLRACE_QUEUE_FULL'))
  assert.equal((await app.admin.stats(queue)).depth, 3)
  await closeNow(app, clock)
})

test('every wrong option is named at once, with its value', async () => {
  const { app, clock, queue } = await stage()
  await assert.rejects(
    app.send(queue, { orderId: 'a' }, { delayMs: 5, readyAt: 5, priority: 10, idempotencyKey: '' }),
    (error: unknown) => {
      code('MILLRACE_INVALID_OPTIONS')(error)
      const message = String(error)
      for (const part of ['delayMs and readyAt', 'priority', 'got 10', 'idempotencyKey']) {
        assert.ok(message.includes(part), `${part} in ${message}`)
      }
      return true
    },
  )
  await assert.rejects(
    app.send(queue, { orderId: 'a' }, { delayMS: 5 } as object),
    /unknown option "delayMS", did you mean "delayMs"/,
  )
  await assert.rejects(app.send(queue, { orderId: 'a' }, { delayMs: Number.NaN }), /got NaN/)
  await assert.rejects(
    app.send(queue, { orderId: 'a' }, { priority: 12, delayMs: 1e15 }),
    /orders": delayMs: expected a number from 0 to 315360000000, got 1000000000000000; priority: expected an integer from 0 to 9, got 12$/,
  )
  await closeNow(app, clock)
})

test('a payload without a key is refused by the sender, with what the key function gave', async () => {
  const gives = new Map<string, unknown>([
    ['undefined', undefined],
    ['null', null],
    ['number', 5],
    ['empty', ''],
  ])
  const { app, clock, queue } = await stage({
    queue: {
      idempotencyKey: ({ orderId }) => {
        if (orderId === 'throws') throw new Error('no such field')
        return (gives.has(orderId) ? gives.get(orderId) : orderId) as string
      },
    },
  })
  const says: Readonly<Record<string, RegExp>> = {
    undefined:
      /payload for queue "orders" has no idempotency key: .* gave undefined, expected a text/,
    null: / gave null, expected a text/,
    number: / gave 5, expected a text/,
    empty: / gave "", expected a text/,
    throws: /idempotencyKey of queue "orders" threw: no such field/,
  }
  for (const [orderId, text] of Object.entries(says)) {
    await assert.rejects(app.send(queue, { orderId }), (error: unknown) => {
      code('MILLRACE_INVALID_PAYLOAD')(error)
      assert.match(String(error), text)
      return true
    })
  }
  await assert.rejects(
    app.sendBatch(queue, [{ orderId: 'fine' }, { orderId: 'null' }]),
    (error: unknown) => error instanceof InvalidPayloadError && error.index === 1,
  )
  // A key of the send's own replaces the function's.
  await app.send(queue, { orderId: 'undefined' }, { idempotencyKey: 'own' })
  assert.equal((await app.admin.stats(queue)).depth, 1)
  await closeNow(app, clock)
})

test('a stored message whose payload gives no key is dead, and says why', async () => {
  const { app, clock, queue, open } = await stage()
  const { id } = await app.send(queue, { orderId: 'a' })
  const strict = { ...queue, idempotencyKey: () => undefined as never }
  const other = await open({ queues: [strict] })
  other.work(strict, () => undefined)
  await other.start()
  await clock.advance(1_000)
  const dead = await other.admin.deadLetters.show(strict, id)
  assert.match(
    String(dead?.reason),
    /^the message has no key: idempotencyKey of queue "orders" gave undefined, expected a text/,
  )
  await closeNow(other, clock)
  await closeNow(app, clock)
})

test('what is no transaction and no queue is named as what it is', async () => {
  const { app, clock, queue } = await stage()
  const pool = new pg.Pool({ connectionString: 'postgres://127.0.0.1:1/none' })
  const sql = postgresJs('postgres://127.0.0.1:1/none')
  const wrong: readonly (readonly [unknown, RegExp])[] = [
    [pool, /tx: a Pool of pg is no transaction, .* give the client on which you said BEGIN/],
    [sql, /tx: the outer sql of postgres.js is no transaction; give the one that sql.begin/],
    [null, /tx: expected an open transaction, got null; leave tx out/],
    [{}, /tx belongs to another database than transport memory/],
  ]
  for (const [tx, text] of wrong) {
    await assert.rejects(app.send(queue, { orderId: 'a' }, { tx }), (error: unknown) => {
      code('MILLRACE_FOREIGN_TRANSACTION')(error)
      assert.match(String(error), text)
      return true
    })
  }
  await pool.end()
  await sql.end()
  await assert.rejects(app.send(undefined as never, {} as never), (error: unknown) => {
    code('MILLRACE_UNKNOWN_QUEUE')(error)
    assert.match(
      String(error),
      /expected a queue of defineQueue \(app.admin takes its name, too\), got undefined/,
    )
    return true
  })
  await assert.rejects(
    app.send(queue, { orderId: 'a' }, { idempotencyKey: 'k'.repeat(100_000) }),
    /printable ASCII characters without spaces, got "k{80}"… \(100000 characters\)/,
  )
  await closeNow(app, clock)
})

test('a queue given by its name is named when it is given twice', async () => {
  const { app, clock, queue } = await stage()
  app.work(queue, () => undefined)
  assert.throws(
    () => app.work(queue.name as never, () => undefined),
    (error: unknown) => String(error).includes(`work on queue "${queue.name}": the queue has`),
  )
  await closeNow(app, clock)
})

test('delayMs and readyAt hold a message back until its time', async () => {
  const { app, clock, queue } = await stage()
  const handled: string[] = []
  app.work(queue, (message) => void handled.push(message.payload.orderId))
  await app.send(queue, { orderId: 'delayed' }, { delayMs: 60_000 })
  await app.send(queue, { orderId: 'dated' }, { readyAt: new Date(clock.now() + 30_000) })
  await app.send(queue, { orderId: 'now' })
  await app.start()
  await clock.advance(29_000)
  assert.deepEqual(handled, ['now'])
  await clock.advance(2_000)
  assert.deepEqual(handled, ['now', 'dated'])
  await clock.advance(30_000)
  assert.deepEqual(handled, ['now', 'dated', 'delayed'])
  await closeNow(app, clock)
})

test('a transaction of somebody else is refused before anything is stored', async () => {
  const { app, clock, queue } = await stage()
  for (const tx of [{}, { execute: () => [] }, 7]) {
    await assert.rejects(
      app.send(queue, { orderId: 'a' }, { tx }),
      code('MILLRACE_FOREIGN_TRANSACTION'),
    )
  }
  assert.equal((await app.admin.stats(queue)).depth, 0)
  await closeNow(app, clock)
})

test('an unknown queue is named, with the nearest known one', async () => {
  const { app, clock } = await stage()
  const other = defineQueue({ name: 'order', owner: 'x', payload: z.string() })
  await assert.rejects(app.send(other, 'a'), /did you mean "orders"/)
  assert.throws(() => app.work(other, () => undefined), code('MILLRACE_UNKNOWN_QUEUE'))
  await closeNow(app, clock)
})

test('handler and key function get the output of the schema', async () => {
  const dates = defineQueue({
    name: 'dates',
    owner: 'team-time',
    payload: z.object({ at: z.coerce.date() }),
    idempotencyKey: (payload) => payload.at.toISOString(),
  })
  const { clock } = await stage()
  const app = await createMillrace({ transport: memory(), queues: [dates], clock })
  const seen: unknown[] = []
  app.work(
    dates,
    (message) => void seen.push([message.payload.at.getTime(), message.idempotencyKey]),
  )
  await app.send(dates, { at: new Date(1_000) })
  await app.start()
  await clock.advance(100)
  assert.deepEqual(seen, [[1_000, '1970-01-01T00:00:01.000Z']])
  await closeNow(app, clock)
})

test('an idempotency key knows the payload that was sent, whatever the schema makes of it', async () => {
  const stamps = defineQueue({
    name: 'stamps',
    owner: 'team-time',
    payload: orderSchema.transform(() => ({ seen: true })),
  })
  const { clock } = await stage()
  const app = await createMillrace({ transport: memory(), queues: [stamps], clock })
  const { id } = await app.send(stamps, { orderId: 'a' }, { idempotencyKey: 'k' })
  await assert.rejects(
    app.send(stamps, { orderId: 'b' }, { idempotencyKey: 'k' }),
    code('MILLRACE_IDEMPOTENCY_CONFLICT'),
  )
  const again = await app.send(stamps, { orderId: 'a' }, { idempotencyKey: 'k' })
  assert.deepEqual(again, { id, duplicate: true })
  await closeNow(app, clock)
})

test('the functions of an ordering key and of a fair key get the output of the schema', async () => {
  const payload = z.object({ at: z.coerce.date() })
  const basics = { owner: 'team-time', payload }
  const day = ({ at }: { at: Date }): string => at.toISOString().slice(0, 10)
  const inOrder = defineQueue({ ...basics, name: 'in-order', orderingKey: day, onDead: 'continue' })
  const fair = defineQueue({ ...basics, name: 'fair', fairBy: day })
  const sent: Envelope[] = []
  const store = memory()
  const { clock } = await stage()
  const transport: Connector = {
    ...store,
    connect: async (context) => {
      const inner = await store.connect(context)
      return {
        ...inner,
        send: (queue, batch, options) => {
          sent.push(...batch)
          return inner.send(queue, batch, options)
        },
      }
    },
  }
  const app = await createMillrace({ transport, queues: [inOrder, fair], clock })
  await app.send(inOrder, { at: new Date(1_000) })
  await app.sendBatch(fair, [{ at: new Date(1_000) }])
  assert.deepEqual(
    sent.map(({ orderingKey, fairKey }) => orderingKey ?? fairKey),
    ['1970-01-01', '1970-01-01'],
  )
  await closeNow(app, clock)
})

test('what the receiver will see is what is checked, not what the sender holds', async () => {
  const asText = defineQueue({
    name: 'as-text',
    owner: 'team-time',
    payload: z.object({ at: z.iso.datetime(), note: z.string().optional() }).strict(),
  })
  const asDate = defineQueue({
    name: 'as-date',
    owner: 'team-time',
    payload: z.object({ at: z.date() }),
  })
  const { clock } = await stage()
  const app = await createMillrace({ transport: memory(), queues: [asText, asDate], clock })
  const at = new Date(1_000)
  // A Date travels as text, and a property that is undefined does not travel.
  await app.send(asText, { at: at as unknown as string, note: undefined })
  await assert.rejects(app.send(asDate, { at }), code('MILLRACE_INVALID_PAYLOAD'))
  await assert.rejects(
    app.sendBatch(asDate, [{ at }]),
    (error: unknown) => error instanceof InvalidPayloadError && error.index === 0,
  )
  const amount = { toJSON: () => '1970-01-01T00:00:01.000Z' }
  await app.sendBatch(asText, [{ at: amount as unknown as string }])
  assert.equal((await app.admin.stats(asText)).depth, 2)
  assert.equal((await app.admin.stats(asDate)).depth, 0)
  await closeNow(app, clock)
})

test('defineQueue names every problem and refuses a queue without an owner', () => {
  assert.throws(
    () =>
      defineQueue({
        name: 'bad name',
        owner: ' ',
        payload: z.string(),
        retry: { attempts: 0, baseMs: -1 },
        capacity: { maxDepth: 0 },
      }),
    (error: unknown) => {
      const message = String(error)
      for (const part of [
        'name:',
        'owner:',
        'retry.attempts',
        'retry.baseMs',
        'capacity.maxDepth',
      ]) {
        assert.ok(message.includes(part), `${part} in ${message}`)
      }
      return true
    },
  )
})

test('a batch that meets a remembered key names that key and its place', async () => {
  const { app, clock, queue } = await stage()
  const first = await app.send(queue, { orderId: 'first' }, { idempotencyKey: 'b' })
  await assert.rejects(
    app.sendBatch(queue, [{ orderId: 'a' }, { orderId: 'b' }, { orderId: 'c' }], {
      idempotencyKey: (payload) => payload.orderId,
    }),
    (error: unknown) => {
      assert.ok(error instanceof MillraceError && error.code === 'MILLRACE_IDEMPOTENCY_CONFLICT')
      const { index, idempotencyKey, firstMessageId } = error.fields
      assert.deepEqual([index, idempotencyKey, firstMessageId], [1, 'b', first.id])
      return true
    },
  )
  await closeNow(app, clock)
})

test('what is no queue of defineQueue and a misspelt limit are refused at once', async () => {
  await assert.rejects(
    createMillrace({
      transport: memory(),
      queues: [undefined, { name: 'x' }] as never,
      logger: { error() {} } as never,
    }),
    /queues\[0\].*queues\[1\].*logger/,
  )
  assert.throws(
    () =>
      defineQueue({
        name: 'x',
        owner: 'team',
        payload: orderSchema,
        retry: { attemps: 3 } as object,
        capacity: { maxDept: 3 } as never,
      }),
    /"retry\.attemps", did you mean "retry\.attempts".*"capacity\.maxDept"/,
  )
})

test('a redrive that selects nothing, or misspells what it selects, moves nothing', async () => {
  const { app, clock, queue } = await stage()
  const { redrive } = app.admin.deadLetters
  for (const what of [{}, { ids: ['a'], filter: {} }, { filter: { errorClas: 'crashed' } }, null]) {
    await assert.rejects(redrive(queue, what as never), (error: unknown) =>
      hasCode(error, 'MILLRACE_INVALID_OPTIONS'),
    )
  }
  await assert.rejects(redrive(queue, { filter: {}, dryrun: true } as never), /"dryrun"/)
  await assert.rejects(app.admin.deadLetters.list(queue, { cursor: 'x' }), (error: unknown) =>
    hasCode(error, 'MILLRACE_INVALID_OPTIONS'),
  )
  await closeNow(app, clock)
})

test('a batch inside a synchronous transaction is in it when the call returns', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-'))
  const db = new DatabaseSync(join(folder, 'queue.db'))
  const { app, queue } = await stage({ app: { transport: sqlite({ db }) } })
  db.exec('BEGIN IMMEDIATE')
  const undone = app.sendBatch(queue, [{ orderId: 'a' }], { tx: db })
  db.exec('ROLLBACK')
  await undone
  db.exec('BEGIN IMMEDIATE')
  const done = app.sendBatch(queue, [{ orderId: 'b' }, { orderId: 'c' }], { tx: db })
  db.exec('COMMIT')
  assert.equal((await done).length, 2)
  assert.equal((await app.admin.stats(queue)).depth, 2)
  // All or nothing, also where the transaction is committed all the same.
  await app.send(queue, { orderId: 'd' }, { idempotencyKey: 'known' })
  db.exec('BEGIN IMMEDIATE')
  const conflict = app.sendBatch(queue, [{ orderId: 'e' }, { orderId: 'f' }], {
    idempotencyKey: (_payload, i) => ['new', 'known'][i],
    tx: db,
  })
  db.exec('COMMIT')
  await assert.rejects(conflict, code('MILLRACE_IDEMPOTENCY_CONFLICT'))
  assert.equal((await app.admin.stats(queue)).depth, 3)
  await app.close()
  db.close()
  await rm(folder, { recursive: true })
})

test('a batch takes no id, and a header that JavaScript would swallow is refused', async () => {
  const { app, clock, queue } = await stage()
  const twice = [{ orderId: 'a' }, { orderId: 'b' }]
  await assert.rejects(
    app.sendBatch(queue, twice, { id: 'x' } as object),
    code('MILLRACE_INVALID_OPTIONS'),
  )
  const headers = JSON.parse('{"__proto__":"x"}') as Record<string, string>
  await assert.rejects(
    app.send(queue, { orderId: 'a' }, { headers }),
    code('MILLRACE_INVALID_OPTIONS'),
  )
  await closeNow(app, clock)
})
