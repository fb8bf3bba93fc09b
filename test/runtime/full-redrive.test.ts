import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PermanentError } from 'millrace'
import { memory } from 'millrace/memory'
import type { Connector } from 'millrace/transport'
import { pause } from '../../src/model/clock.ts'
import { closeNow, type StageOptions, stage } from './stage.ts'

const HOUR_MS = 3_600_000

type Capacity = NonNullable<NonNullable<StageOptions['queue']>['capacity']>

test('a redrive waits while the queue is full, and goes on when there is room', async () => {
  const { app, clock, queue } = await stage({
    queue: { capacity: { maxDepth: 5 }, handlerTimeoutMs: HOUR_MS },
  })
  app.work(queue, ({ payload }) => {
    if (payload.orderId === 'busy') return new Promise<void>(() => undefined)
    throw new PermanentError('broken')
  })
  await app.start()
  for (const orderId of ['busy', 'a', 'b', 'c']) await app.send(queue, { orderId })
  await clock.advance(100)
  assert.equal((await app.admin.stats(queue)).dead, 3)
  await app.admin.pause(queue)
  await clock.advance(10_000)
  // One in flight, one scheduled, and two that are ready.
  await app.send(queue, { orderId: 'later' }, { delayMs: HOUR_MS })
  await app.send(queue, { orderId: 'd' })
  const { id: blocker } = await app.send(queue, { orderId: 'e' })

  const steps: number[] = []
  const moved = app.admin.deadLetters.redrive(queue, {
    filter: {},
    onProgress: (progress) => void steps.push(progress.moved),
  })
  await clock.advance(60_000)
  assert.deepEqual(steps, [1])
  assert.deepEqual(await depths(), { depth: 3, dead: 2 })
  await app.admin.messages.cancel(queue, blocker)
  await clock.advance(1_000)
  assert.deepEqual(await depths(), { depth: 3, dead: 1 })
  await app.admin.resume(queue)
  await clock.advance(10_000)
  // The handler still fails, so that each of them dies a second time and makes room.
  assert.deepEqual(await moved, { matched: 3, moved: 3, notFound: [] })
  await closeNow(app, clock)

  async function depths(): Promise<{ depth: number | undefined; dead: number | undefined }> {
    const { depth, dead } = await app.admin.stats(queue)
    return { depth, dead }
  }
})

/** A full queue with one dead letter, on a backend that takes so long to count it. */
async function fullAndSlow(countMs: number, capacity: Capacity) {
  const seen: { counts: number; failure: Error | undefined } = { counts: 0, failure: undefined }
  const slow: Connector = {
    name: 'memory',
    async connect(context) {
      const inner = await memory().connect(context)
      const { browse } = inner
      assert.ok(browse)
      const gauge: typeof browse.gauge = async (name) => {
        seen.counts += 1
        await pause(context.clock, countMs)
        const { failure } = seen
        seen.failure = undefined
        if (failure !== undefined) throw failure
        return browse.gauge(name)
      }
      return { ...inner, browse: { ...browse, gauge } }
    },
  }
  const on = await stage({ app: { transport: slow }, queue: { capacity } })
  const { app, clock, queue } = on
  app.work(queue, () => {
    throw new PermanentError('broken')
  })
  await app.start()
  await app.send(queue, { orderId: 'a' })
  await clock.advance(1_000)
  await app.admin.pause(queue)
  await app.send(queue, { orderId: 'b' })
  const stop = new AbortController()
  const redrive = () => {
    seen.counts = 0
    return app.admin.deadLetters.redrive(queue, { filter: {}, signal: stop.signal })
  }
  return { ...on, seen, stop, redrive }
}

for (const [countMs, most] of [
  [100, 60],
  // It rests for 10 s at most: who asks every minute whether there is room misses most of it.
  [5_000, 5],
] as const) {
  test(`a redrive that waits for room while counting takes ${countMs} ms counts ${most} times in a minute at most`, async () => {
    const { app, clock, seen, stop, redrive } = await fullAndSlow(countMs, { maxDepth: 1 })
    const redriven = redrive()
    await clock.advance(60_000)
    const { counts } = seen
    stop.abort()
    await clock.advance(10_000)
    assert.equal((await redriven).moved, 0)
    assert.ok(counts > (most * 2) / 3 && counts <= most, `${counts} times`)
    await closeNow(app, clock)
  })
}

test('a redrive that waits in vain in the line of the sends rests before it asks anew, however short they wait', async () => {
  const capacity = { maxDepth: 1, whenFull: 'wait', waitMs: 1 } as const
  const { app, clock, seen, stop, redrive } = await fullAndSlow(0, capacity)
  const redriven = redrive()
  await clock.advance(10_000)
  const { counts } = seen
  stop.abort()
  await clock.advance(1_000)
  assert.equal((await redriven).moved, 0)
  assert.ok(counts > 20 && counts <= 110, `${counts} times in 10 s`)
  await closeNow(app, clock)
})

test('what the backend throws while a redrive waits in the line of the sends ends it', async () => {
  const capacity = { maxDepth: 1, whenFull: 'wait', waitMs: HOUR_MS } as const
  const { app, clock, seen, redrive } = await fullAndSlow(0, capacity)
  const rejected = assert.rejects(redrive(), /the connection broke/)
  await clock.advance(1_000)
  seen.failure = new Error('the connection broke')
  await clock.advance(1_000)
  await rejected
  await closeNow(app, clock)
})

test('a redrive into a queue that holds more than its capacity moves nothing', async () => {
  const { app, clock, queue, store } = await stage()
  app.work(queue, () => {
    throw new PermanentError('broken')
  })
  await app.start()
  for (const orderId of ['a', 'b', 'c']) await app.send(queue, { orderId })
  await clock.advance(1_000)
  await app.admin.pause(queue)
  for (const orderId of ['d', 'e', 'f']) await app.send(queue, { orderId })
  // Another process was given a smaller one.
  const less = await stage({
    transport: store,
    app: { clock },
    queue: { capacity: { maxDepth: 2 } },
  })
  const stop = new AbortController()
  const redriven = less.app.admin.deadLetters.redrive(less.queue, {
    ...{ filter: {}, signal: stop.signal },
    onFull: () => stop.abort(),
  })
  await clock.advance(1_000)
  assert.deepEqual(await redriven, { matched: 3, moved: 0, notFound: [] })
  assert.equal((await app.admin.stats(queue)).dead, 3)
  await closeNow(less.app, clock)
  await closeNow(app, clock)
})

test('a redrive that has moved some and must wait again says so again', async () => {
  const { app, clock, queue } = await stage({ queue: { capacity: { maxDepth: 2 } } })
  app.work(queue, () => {
    throw new PermanentError('broken')
  })
  await app.start()
  for (const orderId of ['a', 'b', 'c']) {
    await app.send(queue, { orderId })
    await clock.advance(100)
  }
  await app.admin.pause(queue)
  const { id } = await app.send(queue, { orderId: 'd' })
  await app.send(queue, { orderId: 'e' })
  const stop = new AbortController()
  let full = 0
  const redriven = app.admin.deadLetters.redrive(queue, {
    ...{ filter: {}, signal: stop.signal },
    onFull: () => void full++,
  })
  await clock.advance(10_000)
  assert.equal(full, 1)
  await app.admin.messages.cancel(queue, id)
  await clock.advance(10_000)
  assert.equal(full, 2)
  stop.abort()
  await clock.advance(1_000)
  assert.equal((await redriven).moved, 1)
  await closeNow(app, clock)
})

test('what halts its key goes at the rate of its redrive, and before the others of a full queue, of which none is lost', async () => {
  const { app, clock, queue } = await stage({
    queue: {
      ...{ orderingKey: ({ orderId }) => orderId.charAt(0), onDead: 'halt-key' },
      capacity: { maxDepth: 2 },
    },
  })
  let isMended = false
  const handled: string[] = []
  app.work(queue, ({ payload: { orderId } }) => {
    if (!isMended) throw new PermanentError('broken')
    handled.push(orderId)
  })
  await app.start()
  for (const orderId of ['a0', 'b0', 'c0', 'd0']) {
    await app.send(queue, { orderId })
    await clock.advance(100)
  }
  const { keys, deadLetters } = app.admin
  assert.deepEqual((await keys.skip(queue, { keys: ['b'] })).moved, ['b'])
  for (const orderId of ['a1', 'd1']) await app.send(queue, { orderId })
  await app.admin.pause(queue)
  isMended = true
  const startedAt = clock.now()
  const steps: (readonly [moved: number, afterMs: number])[] = []
  const redriven = deadLetters.redrive(queue, {
    ...{ filter: {}, ratePerSecond: 20 },
    onProgress: ({ moved }) => void steps.push([moved, clock.now() - startedAt]),
  })
  await clock.advance(5_000)
  assert.deepEqual(steps, [
    [2, 0],
    [3, 100],
  ])
  await app.admin.resume(queue)
  await clock.advance(5_000)
  assert.deepEqual(await redriven, { matched: 4, moved: 4, notFound: [] })
  assert.deepEqual(handled.sort(), ['a0', 'a1', 'b0', 'c0', 'd0', 'd1'])
  await closeNow(app, clock)
})

test('what halts its key is found among more than a page of halted keys', async () => {
  const { app, clock, queue } = await stage({
    queue: {
      ...{ orderingKey: ({ orderId }) => orderId, onDead: 'halt-key' },
      capacity: { maxDepth: 1_000 },
    },
  })
  app.work(queue, () => {
    throw new PermanentError('broken')
  })
  await app.start()
  const keys = Array.from({ length: 501 }, (_, i) => `key-${i + 100}`)
  const sent = await app.sendBatch(
    queue,
    keys.map((orderId) => ({ orderId })),
  )
  await clock.advance(10_000)
  assert.equal((await app.admin.stats(queue)).dead, 501)
  const behind = { orderId: 'key-100' }
  await app.sendBatch(
    queue,
    Array.from({ length: 1_000 }, () => behind),
  )
  const stop = new AbortController()
  const redriven = app.admin.deadLetters.redrive(queue, {
    ...{ ids: [sent.at(-1)?.id ?? ''], signal: stop.signal },
    onFull: () => stop.abort(),
  })
  await clock.advance(1_000)
  assert.equal((await redriven).moved, 1)
  await closeNow(app, clock)
})

test('what is no function to be told by is refused before anything moves', async () => {
  const { app, clock, queue } = await stage()
  for (const name of ['onFull', 'onProgress']) {
    const what = { filter: {}, [name]: 'me' } as never
    await assert.rejects(app.admin.deadLetters.redrive(queue, what), {
      code: 'MILLRACE_INVALID_OPTIONS',
      message: new RegExp(`${name}: expected a function`),
    })
  }
  await closeNow(app, clock)
})

test('the progress of a redrive counts what moved, not what somebody discarded meanwhile', async () => {
  const { app, clock, queue } = await stage()
  app.work(queue, () => {
    throw new PermanentError('broken')
  })
  await app.start()
  const ids: string[] = []
  for (const orderId of ['a', 'b', 'c']) ids.push((await app.send(queue, { orderId })).id)
  await clock.advance(1_000)
  await app.admin.pause(queue)
  const { deadLetters } = app.admin
  const steps: number[] = []
  const redriven = deadLetters.redrive(queue, {
    ...{ ids, ratePerSecond: 10 },
    onProgress: ({ moved }) => void steps.push(moved),
  })
  const startedAt = clock.now()
  const tookMs = redriven.then(() => clock.now() - startedAt)
  await clock.advance(50)
  await deadLetters.discard(queue, { ids: ids.slice(1, 2), reason: 'not wanted' })
  await clock.advance(1_000)
  assert.deepEqual(steps, [1, 1, 2])
  assert.equal(await tookMs, 200, 'behind the last one nothing is waited for')
  assert.deepEqual(await redriven, { matched: 3, moved: 2, notFound: ids.slice(1, 2) })
  await closeNow(app, clock)
})

test('a redrive by filter reads no bodies', async () => {
  const asked: (boolean | undefined)[] = []
  const watched: Connector = {
    name: 'memory',
    async connect(context) {
      const inner = await memory().connect(context)
      const { shelf } = inner
      assert.ok(shelf)
      const list: typeof shelf.list = (name, options) => {
        asked.push(options.bodies)
        return shelf.list(name, options)
      }
      return { ...inner, shelf: { ...shelf, list } }
    },
  }
  const { app, clock, queue } = await stage({ app: { transport: watched } })
  app.work(queue, () => {
    throw new PermanentError('broken')
  })
  await app.start()
  await app.send(queue, { orderId: 'a' })
  await clock.advance(1_000)
  const { matched } = await app.admin.deadLetters.redrive(queue, { filter: {}, dryRun: true })
  assert.deepEqual([matched, asked], [1, [false]])
  await closeNow(app, clock)
})
