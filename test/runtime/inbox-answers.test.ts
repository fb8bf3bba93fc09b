import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineQueue } from 'millrace'
import type { InboxConnector, InboxKey } from 'millrace/inbox'
import { memoryInbox } from 'millrace/testing'
import { z } from 'zod'
import { closeNow, stage } from './stage.ts'

/** An inbox that answers nothing while it is `away`, and what it was asked to record. */
function leaving() {
  const inner = memoryInbox()
  const state: { away: 'no' | 'seen' | 'record'; asked: number; recorded: InboxKey[] } = {
    away: 'no',
    asked: 0,
    recorded: [],
  }
  const connector: InboxConnector<undefined> = {
    ...inner,
    connect: async (context) => {
      const inbox = await inner.connect(context)
      return {
        ...inbox,
        seen: async (keys) => {
          state.asked += 1
          if (state.away === 'seen') throw new Error('no inbox there')
          return inbox.seen(keys)
        },
        record: async (keys) => {
          if (state.away === 'record') throw new Error('no inbox there')
          state.recorded.push(...keys)
          return inbox.record(keys)
        },
      }
    },
  }
  return { state, connector }
}

test('while nobody can say which keys were handled no handler runs, and health says why', async () => {
  const { state, connector } = leaving()
  const { app, clock, queue } = await stage({ app: { inbox: connector } })
  const attempts: number[] = []
  app.work(queue, ({ attempt }) => void attempts.push(attempt))
  await app.send(queue, { orderId: 'a' })
  state.away = 'seen'
  await app.start()
  await clock.advance(60_000)
  const { ok, reasons } = await app.health()
  assert.deepEqual([attempts, app.counters().orders?.acked, ok], [[], 0, false])
  assert.match(reasons.join(), /inbox memory does not answer \(no inbox there\)/)
  state.away = 'no'
  await clock.advance(2_000)
  assert.deepEqual([attempts, app.counters().orders?.acked], [[1], 1])
  assert.equal((await app.health()).ok, true)
  await closeNow(app, clock)
})

test('a message whose key could not be recorded is not acked: it comes again, uncounted, until the key is there', async () => {
  const { state, connector } = leaving()
  const { app, clock, queue } = await stage({
    queue: { idempotencyKey: ({ orderId }) => orderId, retry: { attempts: 2 } },
    app: { inbox: connector },
  })
  const attempts: number[] = []
  app.work(queue, ({ attempt }) => void attempts.push(attempt))
  await app.send(queue, { orderId: 'a' })
  state.away = 'record'
  await app.start()
  await clock.advance(10_000)
  assert.equal(app.counters().orders?.acked, 0)
  // About one a second: an inbox that is away now will hardly be back at once.
  assert.ok(attempts.length > 2 && attempts.length < 12, String(attempts.length))
  assert.ok(
    attempts.every((attempt) => attempt === 1),
    String(attempts),
  )
  state.away = 'no'
  await clock.advance(2_000)
  assert.equal(app.counters().orders?.acked, 1)
  assert.deepEqual(state.recorded, [{ queue: 'orders', key: 'a' }])
  await closeNow(app, clock)
})

test('a handler that lives with the failure of its ctx.tx has handled its message: the key is recorded at the ack', async () => {
  const { state, connector } = leaving()
  const { app, clock, queue } = await stage({
    queue: { idempotencyKey: ({ orderId }) => orderId },
    app: { inbox: connector },
  })
  let runs = 0
  app.work(queue, async (_message, ctx) => {
    runs++
    await ctx.tx(() => Promise.reject(new Error('no effect'))).catch(() => undefined)
  })
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(100)
  await app.send(queue, { orderId: 'a' })
  await clock.advance(100)
  const { acked, duplicates } = app.counters().orders ?? {}
  assert.deepEqual([runs, acked, duplicates, state.recorded.length], [1, 2, 1, 1])
  await closeNow(app, clock)
})

test('while the inbox is away it is asked about once a second, however much waits, and a close waits for none of that', async () => {
  const { state, connector } = leaving()
  const { app, clock, queue } = await stage({ app: { inbox: connector } })
  app.work(queue, () => undefined, { concurrency: 10 })
  const many = Array.from({ length: 200 }, (_, i) => ({ orderId: `${i}` }))
  await app.sendBatch(queue, many)
  state.away = 'seen'
  await app.start()
  await clock.advance(10_000)
  assert.ok(state.asked >= 5 && state.asked <= 12, String(state.asked))
  let closed = false
  const closing = app.close().then(() => {
    closed = true
  })
  await clock.advance(10)
  assert.equal(closed, true)
  await closing
})

test('of a batch each message goes by its own key', async () => {
  const { connector } = leaving()
  const { app, clock, queue, open } = await stage({
    queue: { idempotencyKey: ({ orderId }) => orderId },
    app: { inbox: connector },
  })
  const ran: string[] = []
  app.work(queue, ({ payload }) => void ran.push(payload.orderId))
  await app.start()
  await app.send(queue, { orderId: 'b' })
  await clock.advance(100)
  // A sender of another version: what does not fit the schema has no key.
  const loose = defineQueue({ name: queue.name, owner: queue.owner, payload: z.unknown() })
  const other = await open({ queues: [loose] })
  await other.sendBatch(loose, [{}, { orderId: 'a' }, {}, { orderId: 'b' }, { orderId: 'c' }])
  await clock.advance(100)
  const { duplicates, dead } = app.counters().orders ?? {}
  assert.deepEqual([ran, duplicates, dead], [['b', 'a', 'c'], 1, 2])
  await closeNow(other, clock)
  await closeNow(app, clock)
})

test('a run that lost its message records no key: the message that comes again runs', async () => {
  const { state, connector } = leaving()
  const { app, clock, queue } = await stage({
    queue: { idempotencyKey: ({ orderId }) => orderId },
    app: { inbox: connector },
  })
  let runs = 0
  app.work(queue, (_message, ctx) => {
    runs++
    if (runs > 1) return
    return new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve()))
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(100)
  await app.admin.messages.cancel(queue, id)
  await clock.advance(15_000)
  assert.deepEqual([app.counters().orders?.lost, state.recorded], [1, []])
  await app.send(queue, { orderId: 'a' })
  await clock.advance(1_000)
  assert.deepEqual([runs, app.counters().orders?.acked, state.recorded.length], [2, 1, 1])
  await closeNow(app, clock)
})
