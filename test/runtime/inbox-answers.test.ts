import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { InboxConnector, InboxKey } from 'millrace/inbox'
import { memoryInbox } from 'millrace/testing'
import { closeNow, stage } from './stage.ts'

/** An inbox that answers nothing while it is `away`, and what it was asked to record. */
function leaving() {
  const inner = memoryInbox()
  const state: { away: 'no' | 'seen' | 'record'; recorded: InboxKey[] } = {
    away: 'no',
    recorded: [],
  }
  const connector: InboxConnector<undefined> = {
    ...inner,
    connect: async (context) => {
      const inbox = await inner.connect(context)
      return {
        ...inbox,
        seen: async (keys) => {
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
  assert.ok(attempts.length > 2 && attempts.every((attempt) => attempt === 1), String(attempts))
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

test('of a batch each message goes by its own key', async () => {
  const { connector } = leaving()
  const { app, clock, queue } = await stage({
    queue: { idempotencyKey: ({ orderId }) => orderId },
    app: { inbox: connector },
  })
  const ran: string[] = []
  app.work(queue, ({ payload }) => void ran.push(payload.orderId))
  await app.start()
  await app.send(queue, { orderId: 'b' })
  await clock.advance(100)
  await app.sendBatch(queue, [{ orderId: 'a' }, { orderId: 'b' }, { orderId: 'c' }])
  await clock.advance(100)
  assert.deepEqual([ran, app.counters().orders?.duplicates], [['b', 'a', 'c'], 1])
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
