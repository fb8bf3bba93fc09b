import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type App, type HandlerContext, MillraceError } from 'millrace'
import { memory } from 'millrace/memory'
import { memoryInbox } from 'millrace/testing'
import { closeNow, stage } from './stage.ts'

type Act = (ctx: HandlerContext<unknown>, wait: (ms: number) => Promise<void>) => unknown

/** Runs one handler once, on a store that has the inbox too; an unhandled rejection fails the test by itself. */
async function runOnce(act: Act, queue = {}) {
  const store = memory()
  const set = await stage({
    transport: store,
    queue: { retry: { attempts: 1 }, ...queue },
    app: { inbox: memoryInbox({ transport: store }) },
  })
  const { app, clock } = set
  const wait = (ms: number): Promise<void> => new Promise((resolve) => clock.after(ms, resolve))
  app.work(set.queue, (message, ctx) =>
    message.payload.orderId === 'first' ? act(ctx, wait) : undefined,
  )
  const { id } = await app.send(set.queue, { orderId: 'first' })
  await app.start()
  await clock.advance(60_000)
  const letter = await app.admin.deadLetters.show(set.queue, id)
  const counters = app.counters()['orders']
  await closeNow(app as App, clock)
  return { message: letter?.attempts[0]?.message, counters, lines: set.lines }
}

const fails = (): never => {
  throw new Error('the effect failed')
}

test('the failure of a ctx.tx that nobody awaited is the failure of the handler', async () => {
  const unawaited: Record<string, Act> = {
    'and the handler returns at once': (ctx) => void ctx.tx(fails),
    'and it failed long before': async (ctx, wait) => {
      void ctx.tx(fails)
      await wait(1_000)
    },
    'and it fails long after': (ctx, wait) => void ctx.tx(() => wait(1_000).then(fails)),
    'and it lost a race': async (ctx, wait) => {
      await Promise.race([ctx.tx(() => wait(1_000).then(fails)), wait(10)])
    },
  }
  for (const [what, act] of Object.entries(unawaited)) {
    const { message, counters } = await runOnce(act)
    assert.equal(message, 'the effect failed', what)
    assert.equal(counters?.acked, 0, what)
  }
})

test('an effect that nobody awaited is committed with the ack, though the handler has returned', async () => {
  const { message, counters } = await runOnce((ctx, wait) => void ctx.tx(() => wait(1_000)))
  assert.deepEqual([message, counters?.acked], [undefined, 1])
})

test('a failure of ctx.tx that the handler caught is its own affair', async () => {
  const caught: Act[] = [
    (ctx) => ctx.tx(fails).catch(() => undefined),
    async (ctx, wait) => {
      const done = ctx.tx(fails)
      await wait(1_000)
      await assert.rejects(done, /the effect failed/)
    },
  ]
  for (const act of caught) {
    const { message, counters } = await runOnce(act)
    assert.deepEqual([message, counters?.acked], [undefined, 1])
  }
})

test('a ctx.tx that never ends is bounded by the time of the handler', async () => {
  const endless: Act = (ctx) => void ctx.tx(() => new Promise(() => undefined))
  const { message, counters } = await runOnce(endless, { handlerTimeoutMs: 1_000 })
  assert.match(message ?? '', /took longer than handlerTimeoutMs/)
  assert.equal(counters?.abandoned, 1)
})

test('a handler that returns in its grace and leaves ctx.tx open gets no second grace', async () => {
  const store = memory()
  const { app, clock, queue } = await stage({
    transport: store,
    queue: { handlerTimeoutMs: 1_000, retry: { attempts: 1 } },
    app: { inbox: memoryInbox({ transport: store }) },
  })
  app.work(queue, (_message, ctx) => {
    void ctx.tx(() => new Promise(() => undefined))
    return new Promise<void>((resolve) => clock.after(4_000, resolve))
  })
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(5_900)
  assert.equal(app.counters().orders?.abandoned, 0)
  await clock.advance(200)
  const { abandoned, dead } = app.counters().orders ?? {}
  assert.deepEqual([abandoned, dead], [1, 1])
  await closeNow(app, clock)
})

test('what ctx.tx refuses fails the handler too, awaited or not', async () => {
  const { app, clock, queue } = await stage({ queue: { retry: { attempts: 1 } } })
  app.work(queue, (_message, ctx) => void ctx.tx(() => undefined))
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(1_000)
  const letter = await app.admin.deadLetters.show(queue, id)
  assert.equal(letter?.attempts[0]?.code, 'MILLRACE_INBOX_REQUIRED')
  await closeNow(app, clock)
})

test('ctx.tx and ctx.send after the attempt are logged, and end no process', async () => {
  const { counters, lines } = await runOnce((ctx, wait) => {
    void wait(1_000).then(() => {
      void ctx.tx(() => undefined)
      void ctx.send({ name: 'orders' } as never, { orderId: 'late' } as never)
    })
  })
  assert.equal(counters?.acked, 1)
  assert.deepEqual(
    lines
      .filter(({ level }) => level === 'error')
      .map(({ message }) => /ctx\.(tx|send)/.exec(message)?.[0]),
    ['ctx.tx', 'ctx.send'],
  )
})

test('a ctx.send that nobody awaited is waited for, and its failure is the failure of the handler', async () => {
  const wrong = { orderId: 7 } as never
  const { message } = await runOnce((ctx) => void ctx.send({ name: 'orders' } as never, wrong))
  assert.match(message ?? '', /does not fit its schema/)
  const caught: Act = (ctx) =>
    ctx.send({ name: 'orders' } as never, wrong).catch((error: unknown) => {
      assert.ok(error instanceof MillraceError)
    })
  const unawaited: Act = (ctx, wait) => void caught(ctx, wait)
  for (const act of [caught, unawaited]) assert.equal((await runOnce(act)).counters?.acked, 1)
})
