import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createMillrace, defineQueue, PermanentError, QueueFullError } from 'millrace'
import { memory } from 'millrace/memory'
import { sqlite } from 'millrace/sqlite'
import type { Connector } from 'millrace/transport'
import { pause } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { drainRate } from '../../src/runtime/drain-rate.ts'
import { roomLine } from '../../src/runtime/room-line.ts'
import { virtualClock } from '../../src/testing/virtual-clock.ts'
import { closeNow, orderSchema, stage } from './stage.ts'

const FULL = { code: 'MILLRACE_QUEUE_FULL' }
const waiting = (maxDepth: number, waitMs: number) =>
  ({ capacity: { maxDepth, whenFull: 'wait', waitMs } }) as const
const ids = (count: number) => Array.from({ length: count }, (_, at) => ({ orderId: `o-${at}` }))

test('wait: a send that finds the queue full waits for room, and those that came first are first', async () => {
  const { app, clock, queue } = await stage({ queue: waiting(3, 60_000) })
  const handled: string[] = []
  app.work(queue, ({ payload }) => void handled.push(payload.orderId), { concurrency: 1 })
  let stored = 0
  const sends = ids(20).map((payload) => app.send(queue, payload).then(() => stored++))
  await clock.advance(5_000)
  assert.equal(stored, 3)
  await app.start()
  await clock.advance(30_000)
  await Promise.all(sends)
  assert.deepEqual(
    handled,
    ids(20).map(({ orderId }) => orderId),
  )
  await closeNow(app, clock)
})

test('wait: gives up after waitMs with QueueFullError, and nothing was stored', async () => {
  const { app, clock, queue } = await stage({ queue: waiting(2, 5_000) })
  await app.sendBatch(queue, ids(2))
  const refused = [
    assert.rejects(app.send(queue, { orderId: 'late' }), FULL),
    assert.rejects(app.sendBatch(queue, ids(2)), FULL),
  ]
  let settled = 0
  for (const one of refused) void one.then(() => settled++)
  await clock.advance(4_900)
  assert.equal(settled, 0)
  await clock.advance(200)
  await Promise.all(refused)
  assert.equal((await app.admin.stats(queue)).depth, 2)
  await closeNow(app, clock)
})

test('wait: the signal of a send and the end of the app end the wait', async () => {
  const { app, clock, queue } = await stage({ queue: waiting(1, 3_600_000) })
  await app.send(queue, { orderId: 'a' })
  const mine = new AbortController()
  const aborted = assert.rejects(
    app.send(queue, { orderId: 'b' }, { signal: mine.signal }),
    /enough/,
  )
  const closed = assert.rejects(app.send(queue, { orderId: 'c' }), { code: 'MILLRACE_CLOSED' })
  await clock.advance(1_000)
  mine.abort(new Error('enough'))
  await aborted
  await closeNow(app, clock)
  await closed
  assert.equal(clock.nextDueAt(), undefined)
})

test('wait: what is wrong with a send is said at once, also behind others', async () => {
  const { app, clock, queue } = await stage({ queue: waiting(1, 60_000) })
  await app.send(queue, { orderId: 'a' })
  const first = app.send(queue, { orderId: 'b' })
  const wrong = { orderId: 7 } as unknown as { orderId: string }
  await assert.rejects(app.send(queue, wrong), { code: 'MILLRACE_INVALID_PAYLOAD' })
  app.work(queue, () => {})
  await app.start()
  await clock.advance(1_000)
  await first
  await closeNow(app, clock)
})

test('wait: the line has an end, and serves again after it was empty', async () => {
  const clock = virtualClock()
  let room = 0
  const full = (): QueueFullError => new QueueFullError('orders', 1, 1_000)
  const line = roomLine({
    queue: 'orders',
    clock,
    waitMs: 60_000,
    lengthMax: 3,
    full,
    closed: new AbortController().signal,
  })
  const attempt = async (): Promise<number> => {
    if (room === 0) throw full()
    return room--
  }
  for (const round of [1, 2]) {
    const sends = [line.enter(attempt), line.enter(attempt), line.enter(attempt)]
    await assert.rejects(line.enter(attempt), FULL, `round ${round}`)
    assert.equal(line.length, 3)
    await clock.advance(1_000)
    room = 3
    await clock.advance(1_000)
    assert.deepEqual(await Promise.all(sends), [3, 2, 1])
    assert.equal(line.length, 0)
  }
  assert.equal(clock.nextDueAt(), undefined)
})

test('wait: what leaves the queue lets the next one in at once, not when it would look again', async () => {
  const { app, clock, queue } = await stage({ queue: waiting(1, 60_000) })
  let endedAt = 0
  app.work(queue, async () => {
    await pause(clock, 1_000)
    endedAt ||= clock.now()
  })
  await app.start()
  await app.send(queue, { orderId: 'first' })
  await clock.advance(1)
  let sentAt = 0
  const sent = app.send(queue, { orderId: 'second' }).then(() => {
    sentAt = clock.now()
  })
  await clock.advance(5_000)
  await sent
  assert.ok(endedAt > 0 && sentAt - endedAt <= 20, `${sentAt - endedAt} ms later`)
  await closeNow(app, clock)
})

test('wait: a redrive has its turn in the line of the sends, also while more come than leave', async () => {
  const { app, clock, queue } = await stage({ queue: waiting(3, 60_000) })
  let isMended = false
  let redone = false
  app.work(
    queue,
    async ({ payload }) => {
      if (payload.orderId !== 'broken') return pause(clock, 20)
      if (!isMended) throw new PermanentError('broken')
      redone = true
    },
    { concurrency: 2 },
  )
  await app.start()
  await app.send(queue, { orderId: 'broken' })
  await clock.advance(100)
  assert.equal((await app.admin.stats(queue)).dead, 1)
  isMended = true
  let isOver = false
  const senders = ids(20).map(async (payload) => {
    while (!isOver) await app.send(queue, payload)
  })
  await clock.advance(1_000)
  const redriven = app.admin.deadLetters.redrive(queue, { filter: {} })
  // 21 wait, and 100 leave in a second.
  await clock.advance(1_000)
  assert.ok(redone)
  assert.deepEqual(await redriven, { matched: 1, moved: 1, notFound: [] })
  isOver = true
  await clock.advance(5_000)
  await Promise.all(senders)
  await closeNow(app, clock)
})

test('wait: a redrive that waits in line ends with its signal, and nothing moved', async () => {
  const { app, clock, queue } = await stage({ queue: waiting(1, 5_000) })
  app.work(queue, () => {
    throw new PermanentError('broken')
  })
  await app.start()
  await app.send(queue, { orderId: 'a' })
  await clock.advance(100)
  await app.admin.pause(queue)
  await app.send(queue, { orderId: 'b' })
  const stop = new AbortController()
  let full = 0
  const redriven = app.admin.deadLetters.redrive(queue, {
    ...{ filter: {}, signal: stop.signal },
    onFull: () => void full++,
  })
  // Longer than a send waits.
  await clock.advance(20_000)
  stop.abort()
  await clock.advance(0)
  assert.deepEqual(await redriven, { matched: 1, moved: 0, notFound: [] })
  assert.equal(full, 1)
  assert.equal((await app.admin.stats(queue)).dead, 1)
  await closeNow(app, clock)
})

test('wait: a send in a transaction does not wait, and the transaction survives', async () => {
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE row (n INTEGER)')
  const queue = defineQueue({
    name: 'orders',
    owner: 'team',
    payload: orderSchema,
    ...waiting(1, 60_000),
  })
  const app = await createMillrace({
    transport: sqlite({ db }),
    queues: [queue],
    logger: silentLogger,
  })
  await app.send(queue, { orderId: 'a' })
  db.exec('BEGIN')
  db.prepare('INSERT INTO row VALUES (1)').run()
  await assert.rejects(app.send(queue, { orderId: 'b' }, { tx: db }), FULL)
  db.exec('COMMIT')
  assert.equal(db.prepare('SELECT count(*) AS n FROM row').get()?.n, 1)
  await app.close()
  db.close()
})

test('shed: the newest of a priority displace the oldest of it, none that is more urgent; what went is counted and said', async () => {
  const { app, clock, queue, lines } = await stage({
    queue: { capacity: { maxDepth: 3, whenFull: 'shed' } },
  })
  const [low, urgent] = await app.sendBatch(queue, ids(2), { priority: 0 })
  await app.send(queue, { orderId: 'urgent' }, { priority: 9 })
  await app.send(queue, { orderId: 'normal' }, { priority: 5 })
  assert.equal(await app.admin.messages.get(queue, low?.id ?? ''), null)
  assert.notEqual(await app.admin.messages.get(queue, urgent?.id ?? ''), null)
  await app.sendBatch(queue, ids(2), { priority: 5 })
  await assert.rejects(app.send(queue, { orderId: 'low' }, { priority: 4 }), FULL)
  const { depth, dead } = await app.admin.stats(queue)
  assert.deepEqual([depth, dead, app.counters()[queue.name]?.shed], [3, 0, 3])
  assert.ok(
    lines.some(
      ({ level, message }) => level === 'warn' && /is full: 1 message of it was shed/.test(message),
    ),
  )
  await closeNow(app, clock)
  const atClose = lines.filter(({ message }) => /2 messages of it were shed/.test(message))
  assert.equal(atClose.length, 1, 'close tells of those that came within a minute of the first')
})

test('shed: to the dead letters, where they say why and can be redriven', async () => {
  const { app, clock, queue } = await stage({
    queue: { capacity: { maxDepth: 2, whenFull: 'shed', shedTo: 'dead-letters' } },
  })
  const [first] = await app.sendBatch(queue, ids(2))
  await app.send(queue, { orderId: 'newer' })
  const { items } = await app.admin.deadLetters.list(queue)
  assert.deepEqual(
    items.map(({ id, errorClass, attempts }) => [id, errorClass, attempts.length]),
    [[first?.id, 'permanent', 0]],
  )
  assert.match(items[0]?.reason ?? '', /shed: the queue held 2 messages/)
  await closeNow(app, clock)
})

test('shed: what is in hand stays, and a send that nothing can give way to is refused', async () => {
  const { app, clock, queue } = await stage({
    queue: { capacity: { maxDepth: 2, whenFull: 'shed' } },
  })
  const handled: string[] = []
  app.work(
    queue,
    async ({ payload }) => {
      await pause(clock, 5_000)
      handled.push(payload.orderId)
    },
    { concurrency: 2 },
  )
  await app.sendBatch(queue, ids(2))
  await app.start()
  await clock.advance(1_000)
  await assert.rejects(app.send(queue, { orderId: 'late' }), FULL)
  await clock.advance(10_000)
  assert.deepEqual(handled, ['o-0', 'o-1'])
  await closeNow(app, clock)
})

test('shed: refused where nothing that waits can be removed, and with an order by key', async () => {
  const capacity = { maxDepth: 2, whenFull: 'shed' } as const
  const queue = defineQueue({ name: 'orders', owner: 'team', payload: orderSchema, capacity })
  const weak: Connector = {
    ...memory(),
    connect: async (context) => {
      const { shed: _, ...transport } = await memory().connect(context)
      return transport
    },
  }
  await assert.rejects(createMillrace({ transport: weak, queues: [queue], logger: silentLogger }), {
    code: 'MILLRACE_INVALID_OPTIONS',
    message: /whenFull: memory cannot remove what waits/,
  })
  assert.throws(
    () =>
      defineQueue({
        name: 'orders',
        owner: 'team',
        payload: orderSchema,
        capacity,
        orderingKey: ({ orderId }) => orderId,
        onDead: 'continue',
      }),
    /"shed" with orderingKey would leave gaps/,
  )
})

test('capacity: wrong options are named at once', () => {
  const wrong = { maxDepth: 0, whenFull: 'drop', waitMs: 5, retryAfterMaxMs: 1, maxdepth: 2 }
  const options = { name: 'orders', owner: 'team', payload: orderSchema, capacity: wrong }
  assert.throws(
    () => Reflect.apply(defineQueue, undefined, [options]),
    (error: Error) => {
      for (const part of [
        'maxDepth: expected',
        '"drop"',
        'only with whenFull',
        'retryAfterMaxMs',
        '"capacity.maxdepth"',
      ]) {
        assert.ok(error.message.includes(part), `${part} in ${error.message}`)
      }
      return true
    },
  )
  const capacity = { maxDepth: 5, whenFull: 'wait' }
  assert.throws(
    () => Reflect.apply(defineQueue, undefined, [{ ...options, capacity }]),
    /waitMs: expected an integer from 1 to 3600000, got undefined/,
  )
})

test('when to come back follows from what this process handles; with nothing leaving it is the configured maximum', () => {
  let now = 0
  const steady = {
    last: undefined,
    isReading: false,
    sent: () => {},
    read: async () => ({ at: now, tookMs: 0, total: 5, sentBefore: 0 }),
  }
  const drain = drainRate({ now: () => now, maxMs: 120_000, total: steady })
  assert.equal(drain.retryAfterMs(100_000), 120_000)
  for (; now < 10_000; now += 100) drain.note(10)
  now = 9_999
  // A hundredth of the queue is 1,000 messages: 10 s at 100 a second.
  assert.equal(drain.retryAfterMs(100_000), 10_000)
  assert.equal(drain.retryAfterMs(100), 1_000)
  now = 60_000
  assert.equal(drain.retryAfterMs(100_000), 120_000)
})

test('in a process that only sends, when to come back follows from what others handle', async () => {
  const { app, clock, queue, open } = await stage({ queue: { capacity: { maxDepth: 200 } } })
  const elsewhere = await open()
  elsewhere.work(queue, () => pause(clock, 1_000), { concurrency: 1 })
  await app.sendBatch(queue, ids(200))
  await elsewhere.start()
  const told: number[] = []
  for (let second = 0; second < 20; second++) {
    await clock.advance(500)
    for (let more = true; more; ) {
      more = await app.send(queue, { orderId: 'x' }).then(
        () => true,
        (error: QueueFullError) => {
          told.push(error.retryAfterMs)
          return false
        },
      )
    }
    await clock.advance(500)
  }
  assert.equal(told[0], 60_000)
  // A hundredth of the queue is 2 messages, and one leaves each second.
  const later = told.slice(3)
  assert.ok(
    later.every((ms) => ms >= 1_000 && ms <= 4_000),
    `${told}`,
  )
  await closeNow(elsewhere, clock)
  await closeNow(app, clock)
})

test('a producer at three times the rate of the workers, for five minutes: what was accepted is handled, in a bounded time', async () => {
  const RATE = 20
  const MAX_DEPTH = 100
  const { app, clock, queue } = await stage({ queue: { capacity: { maxDepth: MAX_DEPTH } } })
  const acceptedAt = new Map<string, number>()
  const latencies: number[] = []
  app.work(
    queue,
    async ({ payload }) => {
      latencies.push(clock.now() - (acceptedAt.get(payload.orderId) ?? 0))
      await pause(clock, 1_000)
    },
    { concurrency: RATE },
  )
  await app.start()
  let refused = 0
  for (let second = 0; second < 300; second++) {
    for (let at = 0; at < 3 * RATE; at++) {
      const orderId = `${second}-${at}`
      acceptedAt.set(orderId, clock.now())
      await app.send(queue, { orderId }).catch((error: unknown) => {
        if (!(error instanceof QueueFullError)) throw error
        acceptedAt.delete(orderId)
        refused += 1
      })
    }
    await clock.advance(1_000)
  }
  await clock.advance(60_000)
  assert.equal(latencies.length, acceptedAt.size)
  assert.ok(refused > 300 * RATE, `${refused} were refused`)
  assert.ok(latencies.length > 290 * RATE, `${latencies.length} were handled`)
  // Those in front of it take this long; a second for the one in hand, and one for the steps of this test.
  const bound = (MAX_DEPTH / RATE) * 1_000 + 2_000
  assert.ok(Math.max(...latencies) <= bound, `${Math.max(...latencies)} ms`)
  await closeNow(app, clock)
})
