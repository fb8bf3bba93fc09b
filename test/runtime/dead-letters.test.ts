import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DeadLetterView, PermanentError } from 'millrace'
import { memory } from 'millrace/memory'
import { pause } from '../../src/model/clock.ts'
import type { ConnectContext, Shelf } from '../../src/transport/transport.ts'
import { closeNow, type StageOptions, stage } from './stage.ts'

test('a page of dead letters has 50, the newest first, and the last page says that it is the last', async () => {
  const { app, clock, queue } = await stage()
  app.work(queue, () => {
    throw new PermanentError('broken')
  })
  await app.start()
  for (let i = 0; i < 60; i++) {
    await app.send(queue, { orderId: `o${i}` })
    await clock.advance(1)
  }
  const { deadLetters } = app.admin
  const first = await deadLetters.list(queue)
  assert.equal(first.items.length, 50)
  assert.deepEqual(first.items[0]?.payload, { orderId: 'o59' })
  assert.ok(first.cursor)
  const last = await deadLetters.list(queue, { cursor: first.cursor })
  assert.deepEqual([last.items.length, last.cursor], [10, null])
  assert.deepEqual(last.items[9]?.payload, { orderId: 'o0' })
  await closeNow(app, clock)
})

test('a redrive at a rate moves no more in a second than it names', async () => {
  const { app, clock, queue } = await stage()
  app.work(queue, () => {
    throw new PermanentError('broken')
  })
  for (let i = 0; i < 6; i++) await app.send(queue, { orderId: `o${i}` })
  await app.start()
  await clock.advance(1_000)
  await app.admin.pause(queue)
  const from = clock.now()
  const movedAt: number[] = []
  const moved = app.admin.deadLetters.redrive(queue, {
    filter: {},
    ratePerSecond: 5,
    onProgress: () => void movedAt.push(clock.now() - from),
  })
  await clock.advance(10_000)
  assert.equal((await moved).moved, 6)
  assert.deepEqual(movedAt, [0, 200, 400, 600, 800, 1_000])
  await closeNow(app, clock)
})

test('who is told of a death is told what the admin shows', async () => {
  const told: DeadLetterView[] = []
  const { app, clock, queue } = await stage({
    queue: { retry: { attempts: 2 } },
    app: { onDeadLetter: (letter) => void told.push(letter) },
  })
  app.work(queue, ({ attempt }) => {
    throw new Error(`broken ${attempt}`)
  })
  const { id } = await app.send(queue, { orderId: 'a' }, { headers: { trace: 't' } })
  await app.start()
  await clock.advance(60_000)
  const shown = await app.admin.deadLetters.show(queue, id)
  assert.deepEqual(told, [shown])
  assert.deepEqual(
    shown?.attempts.map(({ message }) => message),
    ['broken 1', 'broken 2'],
  )
  const message = await app.admin.messages.get(queue, id)
  assert.deepEqual([message?.state, message?.attempt], ['dead', 2])
  await closeNow(app, clock)
})

test('a filter chooses from all pages, by class and time of death, and a name counts once', async () => {
  const { app, clock, queue } = await stage()
  app.work(queue, () => {
    throw new PermanentError('broken')
  })
  await app.start()
  const payloads = Array.from({ length: 700 }, (_, i) => ({ orderId: `o${i}` }))
  const [one] = await app.sendBatch(queue, payloads)
  assert.ok(one)
  await clock.advance(1_000)
  const deadBefore = clock.now()
  await clock.advance(1_000)
  await app.sendBatch(queue, payloads)
  await clock.advance(1_000)
  const { redrive, audit } = app.admin.deadLetters
  const matched = async (filter: object): Promise<number> =>
    (await redrive(queue, { filter, dryRun: true })).matched
  assert.equal(await matched({}), 1_400)
  assert.equal(await matched({ deadBefore }), 700)
  assert.equal(await matched({ errorClass: 'transient' }), 0)
  await app.admin.pause(queue)
  const named = { ids: [one.id, one.id], actor: 'ada', reason: 'the format is known now' }
  assert.deepEqual(await redrive(queue, named), { matched: 1, moved: 1, notFound: [] })
  assert.deepEqual(
    (await audit(queue)).map(({ messageId, actor, reason }) => [messageId, actor, reason]),
    [[one.id, 'ada', 'the format is known now']],
  )
  await closeNow(app, clock)
})

test('of all dead letters those that died first are redriven first', async () => {
  const { app, clock, queue } = await stage()
  const handled: string[] = []
  let broken = true
  app.work(
    queue,
    ({ payload }) => {
      if (broken) throw new PermanentError('broken')
      handled.push(payload.orderId)
    },
    { concurrency: 1 },
  )
  await app.start()
  for (const orderId of ['a', 'b', 'c']) {
    await app.send(queue, { orderId })
    await clock.advance(1_000)
  }
  broken = false
  assert.equal((await app.admin.deadLetters.redrive(queue, { filter: {} })).moved, 3)
  await clock.advance(1_000)
  assert.deepEqual(handled, ['a', 'b', 'c'])
  await closeNow(app, clock)
})

test('a rate holds for a redrive of many, whatever part of the time the backend takes', async () => {
  const transport = aroundShelf((shelf, { clock }) => ({
    redrive: async (...asked) => {
      await pause(clock, 60)
      return await shelf.redrive(...asked)
    },
  }))
  const { app, clock, queue } = await stage({ transport })
  app.work(queue, () => {
    throw new PermanentError('broken')
  })
  await app.start()
  for (let i = 0; i < 30; i++) await app.send(queue, { orderId: `o${i}` })
  await clock.advance(1_000)
  await app.admin.pause(queue)
  const startedAt = clock.now()
  const movedAt: number[] = []
  const redriven = app.admin.deadLetters.redrive(queue, {
    filter: {},
    ratePerSecond: 10,
    onProgress: () => void movedAt.push(clock.now() - startedAt),
  })
  await clock.advance(10_000)
  assert.equal((await redriven).moved, 30)
  assert.deepEqual(
    movedAt,
    Array.from({ length: 30 }, (_, i) => 60 + 100 * i),
  )
  await closeNow(app, clock)
})

test('a redrive that is stopped has moved what it says, and takes the rest for neither moved nor gone', async () => {
  const { app, clock, queue } = await stage()
  app.work(queue, () => {
    throw new PermanentError('broken')
  })
  await app.start()
  const ids: string[] = []
  for (let i = 0; i < 30; i++) ids.push((await app.send(queue, { orderId: `o${i}` })).id)
  await clock.advance(1_000)
  await app.admin.pause(queue)
  const stop = new AbortController()
  const redriven = app.admin.deadLetters.redrive(queue, {
    ids: [...ids, 'none'],
    ratePerSecond: 10,
    signal: stop.signal,
  })
  await clock.advance(450)
  stop.abort()
  await clock.advance(10_000)
  assert.deepEqual(await redriven, { matched: 30, moved: 5, notFound: ['none'] })
  const { depth, dead } = await app.admin.stats(queue)
  assert.deepEqual([depth, dead], [5, 25])
  await closeNow(app, clock)
})

test('a discard of many goes in steps of 500, and says how many there were', async () => {
  const steps: number[] = []
  const transport = aroundShelf((shelf) => ({
    discard: (queue, ids, audit) => {
      steps.push(ids.length)
      return shelf.discard(queue, ids, audit)
    },
  }))
  const { app, clock, queue } = await stage({ transport })
  app.work(queue, () => {
    throw new PermanentError('broken')
  })
  await app.start()
  const ids = Array.from({ length: 1_103 }, (_, i) => `unknown-${i}`)
  for (const place of [0, 499, 500, 1_102]) {
    const { id } = await app.send(queue, { orderId: String(place) })
    ids[place] = id
  }
  await clock.advance(100)
  const { discarded, notFound } = await app.admin.deadLetters.discard(queue, { ids, reason: 'old' })
  assert.deepEqual([discarded, notFound.length, steps], [4, 1_099, [500, 500, 103]])
  assert.equal((await app.admin.stats(queue)).dead, 0)
  await closeNow(app, clock)
})

/** On memory, with some calls of its shelf done otherwise. */
function aroundShelf(
  change: (shelf: Shelf, context: ConnectContext) => Partial<Shelf>,
): NonNullable<StageOptions['transport']> {
  const store = memory()
  return {
    ...store,
    connect: async (context) => {
      const inner = await store.connect(context)
      const { shelf } = inner
      assert.ok(shelf)
      return { ...inner, shelf: { ...shelf, ...change(shelf, context) } }
    },
  }
}
