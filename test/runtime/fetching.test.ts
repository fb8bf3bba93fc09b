import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type BlobStore, memoryBlobs } from 'millrace/blobs'
import type { InboxConnector } from 'millrace/inbox'
import { memory } from 'millrace/memory'
import { memoryInbox } from 'millrace/testing'
import type { Connector } from 'millrace/transport'
import { pause } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { fetching } from '../../src/runtime/fetching.ts'
import { virtualClock } from '../../src/testing/virtual-clock.ts'
import { handedOut } from './handed-out.ts'
import { closeNow, stage } from './stage.ts'

const large = { orderId: 'x'.repeat(100_000) }
const small = { orderId: 'small' }

/** Blobs that are put, and not got before `answer` is called. */
function slowBlobs() {
  const kept = memoryBlobs()
  const { promise, resolve } = Promise.withResolvers<void>()
  const seen = { gets: 0 }
  const blobs: BlobStore = {
    ...kept,
    get: async (...given) => {
      seen.gets += 1
      await promise
      return kept.get(...given)
    },
  }
  return { blobs, seen, answer: resolve }
}

test('A body that comes after the close has begun ends nothing that still runs', async () => {
  const { blobs, seen, answer } = slowBlobs()
  const { app, clock, queue } = await stage({ app: { claimCheck: { blobs } } })
  const ended: (readonly [string, boolean])[] = []
  app.work(
    queue,
    async ({ payload }, { signal }) => {
      await pause(clock, 5_000)
      ended.push([payload.orderId, signal.aborted])
    },
    { concurrency: 2 },
  )
  await app.send(queue, small)
  await app.send(queue, large)
  await app.start()
  await clock.advance(1_000)
  assert.equal(seen.gets, 1)
  const closing = app.close({ timeoutMs: 30_000 })
  await clock.advance(1_000)
  answer()
  await clock.advance(10_000)
  await closing
  assert.deepEqual(ended, [['small', false]])
  assert.equal(app.counters().orders?.acked, 1)
})

test('A close waits for no body: its message goes back at once, uncounted', async () => {
  for (const away of [false, true]) {
    const { blobs, answer } = slowBlobs()
    const get = away ? () => Promise.reject(new Error('the blobs are away')) : blobs.get
    const claimCheck = { blobs: { ...blobs, get } }
    const { app, clock, queue, open } = await stage({ app: { claimCheck } })
    app.work(queue, () => assert.fail('it has no body'))
    const { id } = await app.send(queue, large)
    await app.start()
    await clock.advance(10)
    let closed = false
    const closing = app.close({ timeoutMs: 30_000 }).then(() => {
      closed = true
    })
    await clock.advance(10)
    assert.ok(closed, away ? 'it does not wait to ask again' : 'it does not wait for the answer')
    await closing
    answer()
    const other = await open({ claimCheck: { blobs } })
    const back = await other.admin.messages.get(queue, id)
    assert.deepEqual([back?.attempt, back?.attempts], [1, []])
    await closeNow(other, clock)
  }
})

test('A close while the inbox is asked fetches no body, or does not wait for it', async () => {
  const { blobs } = slowBlobs()
  const asked = Promise.withResolvers<void>()
  const inner = memoryInbox()
  const inbox: InboxConnector<undefined> = {
    ...inner,
    connect: async (context) => {
      const found = await inner.connect(context)
      const seen: typeof found.seen = async (keys) => {
        await asked.promise
        return found.seen(keys)
      }
      return { ...found, seen }
    },
  }
  const { app, clock, queue } = await stage({ app: { claimCheck: { blobs }, inbox } })
  app.work(queue, () => assert.fail('it has no body'))
  await app.send(queue, large, { idempotencyKey: 'k' })
  await app.start()
  await clock.advance(1_000)
  let closed = false
  const closing = app.close({ timeoutMs: 30_000 }).then(() => {
    closed = true
  })
  await clock.advance(1_000)
  asked.resolve()
  await clock.advance(1_000)
  assert.ok(closed)
  await closing
})

test('A layer whose way to a body throws is as blobs that are away: the message waits, uncounted, and health says why', async () => {
  const state = { broken: true }
  const throwing: Connector = {
    name: 'memory',
    async connect(context) {
      const inner = await memory().connect(context)
      return {
        ...inner,
        subscribe: async (...given) => {
          const found = await inner.subscribe(...given)
          return {
            ...found,
            receive: async (options) =>
              (await found.receive(options)).map((delivery) =>
                state.broken
                  ? { ...delivery, fetchBody: () => Promise.reject(new Error('no way there')) }
                  : delivery,
              ),
          }
        },
      }
    },
  }
  const { app, clock, queue } = await stage({ app: { transport: throwing } })
  const attempts: number[] = []
  // The slot that it waits in is the only one.
  app.work(queue, ({ attempt }) => void attempts.push(attempt), { concurrency: 1 })
  await app.send(queue, small)
  await app.start()
  await clock.advance(5_000)
  const { ok, reasons } = await app.health()
  assert.deepEqual([attempts, ok], [[], false])
  assert.match(reasons.join(), /queue "orders": no way there/)
  state.broken = false
  await clock.advance(5_000)
  assert.deepEqual(attempts, [1])
  await closeNow(app, clock)
})

test('Of a key that the payload tells the inbox is asked once the body is there, and a known one does not run', async () => {
  const { blobs, answer } = slowBlobs()
  answer()
  const { app, clock, queue } = await stage({
    app: { claimCheck: { blobs }, inbox: memoryInbox() },
    queue: { idempotencyKey: ({ orderId }) => orderId.slice(0, 3) },
  })
  let runs = 0
  app.work(queue, () => void runs++)
  await app.start()
  for (let n = 0; n < 2; n++) {
    await app.send(queue, large)
    await clock.advance(1_000)
  }
  assert.deepEqual([runs, app.counters().orders?.duplicates], [1, 1])
  assert.equal((await app.admin.stats(queue)).inFlight, 0)
  await closeNow(app, clock)
})

test('What cannot be decided of a message whose body was fetched is said, and its slot is free', async () => {
  const broken = new Error('the flow is broken')
  const nobody = undefined as never
  const acts: unknown[] = []
  let freed = 0
  const { queue } = await stage()
  const clock = virtualClock()
  const bodies = fetching({
    ...{ queue, clock, logger: silentLogger },
    hands: {
      reserve: () => () => void freed++,
      settleLater: (_delivery, act) => void act(nobody).catch((cause) => acts.push(cause)),
    },
    ...{ inbox: undefined, stopped: new AbortController().signal },
    fetched: () => Promise.reject(broken),
  })
  bodies.follow([handedOut('a')])
  await clock.advance(10)
  assert.deepEqual([acts, freed], [[broken], 1])
})
