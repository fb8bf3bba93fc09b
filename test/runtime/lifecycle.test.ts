import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { test } from 'node:test'
import { defineQueue, hasCode, PermanentError } from 'millrace'
import { memoryInbox } from 'millrace/testing'
import { closeNow, orderSchema, stage } from './stage.ts'

const never = (): Promise<never> => new Promise(() => undefined)

test('send works before start, and close before start closes', async () => {
  const { app, clock, queue, open } = await stage()
  const { id, duplicate } = await app.send(queue, { orderId: 'a' })
  assert.equal(duplicate, false)
  await closeNow(app, clock)
  await closeNow(app, clock)
  const other = await open()
  assert.equal((await other.admin.messages.get(queue, id))?.state, 'ready')
  await closeNow(other, clock)
})

test('close drains: what runs may finish, and nothing new begins', async () => {
  const { app, clock, queue, open } = await stage()
  let finished = 0
  app.work(
    queue,
    async (_message, ctx) => {
      await new Promise<void>((resolve) => clock.after(2_000, resolve))
      assert.equal(ctx.signal.aborted, false)
      finished++
    },
    { concurrency: 2 },
  )
  for (const orderId of ['a', 'b', 'c', 'd']) await app.send(queue, { orderId })
  await app.start()
  await clock.advance(100)
  const closed = app.close({ timeoutMs: 10_000 })
  await clock.advance(5_000)
  await closed
  assert.equal(finished, 2)
  const other = await open()
  assert.equal((await other.admin.stats(queue)).depth, 2)
  await closeNow(other, clock)
})

test('what had come but not begun when close was called goes back, and does not begin', async () => {
  let checking: PromiseWithResolvers<void> | undefined
  const slow = orderSchema.transform(async (order) => {
    await checking?.promise
    return order
  })
  const { app, clock, queue, open } = await stage({
    queue: { payload: slow as unknown as typeof orderSchema },
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  let began = 0
  app.work(queue, () => void began++)
  checking = Promise.withResolvers()
  await app.start()
  await clock.advance(100)
  assert.equal((await app.admin.stats(queue)).inFlight, 1)
  const closed = app.close({ timeoutMs: 1_000 })
  checking.resolve()
  await clock.advance(2_000)
  await closed
  assert.equal(began, 0)
  const other = await open()
  const waiting = await other.admin.messages.get(queue, id)
  assert.deepEqual([waiting?.state, waiting?.attempts], ['ready', []])
  await closeNow(other, clock)
})

test('at the limit of close the signal fires and messages go back uncounted', async () => {
  const { app, clock, queue, open } = await stage()
  const reasons: unknown[] = []
  app.work(queue, (_message, ctx) => {
    ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))
    return never()
  })
  const sent = await app.sendBatch(queue, [{ orderId: 'a' }, { orderId: 'b' }])
  await app.start()
  await clock.advance(100)
  const closed = app.close({ timeoutMs: 1_000 })
  await clock.advance(900)
  assert.equal(reasons.length, 0)
  await clock.advance(2_000)
  await closed
  assert.equal(reasons.length, 2)
  for (const reason of reasons) assert.ok(hasCode(reason, 'MILLRACE_SHUTTING_DOWN'))
  assert.equal(app.counters().orders?.released, 2, 'given back at once, not left to the backend')
  const other = await open()
  for (const { id } of sent) {
    const message = await other.admin.messages.get(queue, id)
    assert.equal(message?.state, 'ready')
    assert.equal(message?.attempt, 1)
    assert.deepEqual(message?.attempts, [])
  }
  await closeNow(other, clock)
})

test('a handler that never settles frees its slot, and health says so', async () => {
  const { app, clock, queue } = await stage({
    queue: { handlerTimeoutMs: 100, retry: { attempts: 1 } },
  })
  let good = 0
  app.work(queue, (message) => (message.payload.orderId === 'hang' ? never() : void good++), {
    concurrency: 2,
  })
  for (const orderId of ['hang', 'hang', 'a', 'b', 'c', 'd', 'e'])
    await app.send(queue, { orderId })
  await app.start()
  await clock.advance(4_000)
  assert.equal(good, 0)
  await clock.advance(2_000)
  assert.equal(good, 5)
  const probe = app.health()
  await clock.advance(0)
  const health = await probe
  assert.equal(health.ok, false)
  assert.match(health.reasons.join(), /2 handler\(s\) still run/)
  assert.equal(app.counters()['orders']?.dead, 2)
  await closeNow(app, clock)
})

test('a closed app leaves no timer, whatever has happened to its handlers', async () => {
  const { app, clock, queue } = await stage({
    queue: { handlerTimeoutMs: 1_000, retry: { attempts: 1 } },
    app: { inbox: memoryInbox() },
  })
  app.work(queue, ({ payload }, { signal }) => {
    const ends = async (): Promise<void> => {
      if (payload.orderId === 'late') await new Promise((resolve) => (signal.onabort = resolve))
    }
    return ends()
  })
  await app.send(queue, { orderId: 'late' })
  await app.send(queue, { orderId: 'fine' })
  await app.start()
  await clock.advance(1_500)
  assert.deepEqual([app.counters().orders?.acked, app.counters().orders?.dead], [2, 0])
  const closed = app.close()
  await clock.advance(0)
  await closed
  assert.equal(clock.nextDueAt(), undefined)
})

test('a handler that ends long after its time was given up is forgotten by health', async () => {
  const { app, clock, queue } = await stage({
    queue: { handlerTimeoutMs: 100, retry: { attempts: 1 } },
  })
  app.work(queue, () => new Promise<void>((resolve) => clock.after(60_000, resolve)))
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(30_000)
  assert.match((await app.health()).reasons.join(), /1 handler\(s\) still run/)
  await clock.advance(40_000)
  assert.deepEqual(await app.health(), { ok: true, reasons: [] })
  const { abandoned, dead, acked } = app.counters().orders ?? {}
  assert.deepEqual([abandoned, dead, acked], [0, 1, 0])
  await closeNow(app, clock)
})

test('on timeout the signal fires with the reason, and a handler that listens ends in time', async () => {
  const { app, clock, queue } = await stage({
    queue: { handlerTimeoutMs: 1_000, retry: { attempts: 1 } },
  })
  app.work(
    queue,
    (_message, ctx) =>
      new Promise((_resolve, reject) => {
        ctx.signal.addEventListener('abort', () => reject(new Error('stopped by signal')))
      }),
  )
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(1_100)
  const letter = await app.admin.deadLetters.show(queue, id)
  assert.equal(letter?.attempts[0]?.code, 'MILLRACE_HANDLER_TIMEOUT')
  assert.equal(app.counters()['orders']?.abandoned, 0)
  await closeNow(app, clock)
})

test('each handler has its own time, whoever began with it or after it', async () => {
  const { app, clock, queue } = await stage({
    queue: { handlerTimeoutMs: 1_000, retry: { attempts: 1 } },
  })
  const told: string[] = []
  app.work(queue, async ({ payload }, ctx) => {
    ctx.signal.addEventListener('abort', () => told.push(`${payload.orderId} ${clock.now()}`))
    const ms = payload.orderId === 'short' ? 10 : 60_000
    await new Promise<void>((resolve) => clock.after(ms, resolve))
  })
  await app.sendBatch(queue, [{ orderId: 'short' }, { orderId: 'long' }])
  await app.start()
  const from = clock.now()
  await clock.advance(300)
  await app.send(queue, { orderId: 'later' })
  await clock.advance(5_000)
  assert.deepEqual(told, [`long ${from + 1_000}`, `later ${from + 1_300}`])
  assert.equal(app.counters()['orders']?.acked, 1)
  await clock.advance(100_000)
  await closeNow(app, clock)
})

test('leases are renewed: a handler far longer than its lease runs once', async () => {
  const { app, clock, queue, open } = await stage({ queue: { handlerTimeoutMs: 600_000 } })
  let runs = 0
  const handler = async (): Promise<void> => {
    runs++
    await new Promise<void>((resolve) => clock.after(300_000, resolve))
  }
  app.work(queue, handler)
  const second = await open()
  second.work(queue, handler)
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await second.start()
  await clock.advance(400_000)
  assert.equal(runs, 1)
  assert.equal(app.counters()['orders']?.acked || second.counters()['orders']?.acked, 1)
  await closeNow(app, clock)
  await closeNow(second, clock)
})

test('a cancelled message in flight fires the signal of its handler and is not acked', async () => {
  const { app, clock, queue } = await stage()
  let reason: unknown
  app.work(
    queue,
    (_message, ctx) =>
      new Promise<void>((resolve) => {
        ctx.signal.addEventListener('abort', () => {
          reason = ctx.signal.reason
          resolve()
        })
      }),
  )
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(100)
  assert.equal(await app.admin.messages.cancel(queue, id), true)
  await clock.advance(15_000)
  assert.ok(hasCode(reason, 'MILLRACE_LEASE_LOST'))
  assert.equal(app.counters()['orders']?.acked, 0)
  assert.equal(app.counters()['orders']?.lost, 1)
  await closeNow(app, clock)
})

test('a cancelled message whose schema had answered late fires the signal of its handler, too', async () => {
  const late = orderSchema.transform(async (order) => order)
  const { app, clock, queue } = await stage({
    queue: { payload: late as unknown as typeof orderSchema },
  })
  const reasons: unknown[] = []
  app.work(queue, async (_message, ctx) => {
    await new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve()))
    reasons.push(ctx.signal.reason)
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(100)
  assert.equal(await app.admin.messages.cancel(queue, id), true)
  await clock.advance(15_000)
  assert.ok(hasCode(reasons[0], 'MILLRACE_LEASE_LOST'))
  await closeNow(app, clock)
})

test('a handler that goes on though its message is lost frees its slot after five seconds', async () => {
  const { app, clock, queue } = await stage({ queue: { handlerTimeoutMs: 3_600_000 } })
  const began: string[] = []
  app.work(
    queue,
    ({ payload }) => {
      began.push(payload.orderId)
      return payload.orderId === 'hang' ? never() : undefined
    },
    { concurrency: 1 },
  )
  const { id } = await app.send(queue, { orderId: 'hang' })
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(100)
  await app.admin.messages.cancel(queue, id)
  // The next renewal tells, within a third of the lease.
  await clock.advance(10_000)
  assert.deepEqual(began, ['hang'])
  await clock.advance(5_000)
  assert.deepEqual(began, ['hang', 'a'])
  await closeNow(app, clock)
})

test("nobody else's async context reaches a handler", async () => {
  const context = new AsyncLocalStorage<string>()
  const { app, clock, queue } = await stage()
  const seen: (string | undefined)[] = []
  app.work(queue, () => {
    seen.push(context.getStore())
    context.enterWith('left behind')
  })
  await context.run('request of a user', async () => {
    await app.start()
    await app.send(queue, { orderId: 'a' })
    await app.send(queue, { orderId: 'b' })
    await clock.advance(100)
  })
  assert.deepEqual(seen, [undefined, undefined])
  await closeNow(app, clock)
})

test('pause stops new runs everywhere and resume goes on', async () => {
  const { app, clock, queue } = await stage()
  let runs = 0
  app.work(queue, () => void runs++)
  await app.start()
  await app.admin.pause(queue)
  await app.send(queue, { orderId: 'a' })
  await clock.advance(60_000)
  assert.equal(runs, 0)
  assert.equal((await app.admin.stats('orders')).paused, true)
  await app.admin.resume(queue)
  await clock.advance(10_000)
  assert.equal(runs, 1)
  await closeNow(app, clock)
})

type Stage = Awaited<ReturnType<typeof stage>>

/** Buries a message while the hook goes on. */
async function buryOne(hook: (made: Stage) => Promise<void>): Promise<Stage> {
  const made: Stage = await stage({ app: { onDeadLetter: () => hook(made) } })
  made.app.work(made.queue, ({ payload }) => {
    if (payload.orderId === 'endless') return never()
    throw new PermanentError('no')
  })
  await made.app.start()
  await made.app.send(made.queue, { orderId: 'a' })
  await made.clock.advance(10)
  return made
}

test('close waits for who is told of a dead letter, who may still send', async () => {
  let id: string | undefined
  const { app, clock } = await buryOne(async (made) => {
    await new Promise<void>((resolve) => made.clock.after(5_000, resolve))
    id = (await made.app.send(made.queue, { orderId: 'mail to the owner' })).id
  })
  let closed = false
  const closing = app.close().then(() => {
    closed = true
  })
  await clock.advance(4_900)
  assert.equal(closed, false)
  await clock.advance(1_000)
  await closing
  assert.notEqual(id, undefined)
})

test('close waits no longer than its time for who is told of a dead letter, and not at all in a hurry', async () => {
  const endless = () => new Promise<void>(() => undefined)
  const slow = await buryOne(endless)
  await slow.app.send(slow.queue, { orderId: 'endless' })
  await slow.clock.advance(10)
  const from = slow.clock.now()
  let closedAt = 0
  const closing = slow.app.close({ timeoutMs: 3_000 }).then(() => {
    closedAt = slow.clock.now()
  })
  await slow.clock.advance(10_000)
  await closing
  assert.ok(closedAt >= from + 3_000 && closedAt <= from + 3_500, `${closedAt - from} ms`)
  const hasty = await buryOne(endless)
  const first = hasty.app.close()
  await hasty.clock.advance(1_000)
  const second = hasty.app.close({ timeoutMs: 0 })
  await hasty.clock.advance(500)
  await Promise.all([first, second])
})

test('a failing onDeadLetter hook changes nothing for the message', async () => {
  const told: string[] = []
  const { app, clock, queue, lines } = await stage({
    queue: { retry: { attempts: 1 } },
    app: {
      onDeadLetter: (letter) => {
        told.push(letter.id)
        throw new Error('pager is broken')
      },
    },
  })
  app.work(queue, () => {
    throw new Error('no')
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(1_000)
  assert.deepEqual(told, [id])
  assert.ok(
    lines.some((line) => line.level === 'error' && line.message.includes('onDeadLetter failed')),
  )
  assert.ok(lines.some((line) => line.level === 'error' && line.message.includes('is dead')))
  assert.equal((await app.admin.stats(queue)).dead, 1)
  await closeNow(app, clock)
})

test('a start that a close overtakes is closed, and begins nothing more', async () => {
  const other = defineQueue({ name: 'other', owner: 'team-orders', payload: orderSchema })
  const { app, clock, queue } = await stage({ beside: [other] })
  let runs = 0
  for (const one of [queue, other]) {
    app.work(one, () => {
      runs++
    })
    await app.send(one, { orderId: 'a' })
  }
  const starting = app.start()
  const closing = app.close()
  await assert.rejects(starting, { code: 'MILLRACE_CLOSED', message: /while it was starting/ })
  await clock.advance(1_000)
  await closing
  assert.equal(runs, 0)
})

test('a closed app does not start again, whether it had been started or not', async () => {
  const closed = { code: 'MILLRACE_CLOSED' }
  for (const startFirst of [true, false]) {
    const { app, clock } = await stage()
    if (startFirst) await app.start()
    const closing = app.close({ timeoutMs: 0 })
    await assert.rejects(app.start(), closed)
    await clock.advance(1_000)
    await closing
    await assert.rejects(app.start(), closed)
  }
})
