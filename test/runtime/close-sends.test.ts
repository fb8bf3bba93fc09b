import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMillraceError, PermanentError } from 'millrace'
import { memory } from 'millrace/memory'
import { pause } from '../../src/model/clock.ts'
import { sendsUnderWay } from '../../src/runtime/sends-under-way.ts'
import { closeNow, orderSchema, type StageOptions, stage } from './stage.ts'

/** Memory that takes a second for each call, and longer the longer it is told to. */
async function slowToSend(options: StageOptions = {}) {
  const store = memory()
  const backend = { takesMs: 1_000, calls: 0 }
  const transport: StageOptions['transport'] = {
    ...store,
    connect: async (context) => {
      const inner = await store.connect(context)
      return {
        ...inner,
        send: async (queue, batch, how) => {
          backend.calls++
          const { promise, resolve, reject } = Promise.withResolvers<void>()
          context.clock.after(backend.takesMs, resolve)
          how.signal.addEventListener('abort', () => reject(how.signal.reason))
          await promise
          return inner.send(queue, batch, how)
        },
      }
    },
  }
  const staged = await stage({ ...options, transport })
  const outcomes: string[] = []
  const note = (sent: Promise<unknown>): void => {
    sent.then(
      () => outcomes.push('stored'),
      (error: unknown) => outcomes.push(isMillraceError(error) ? error.code : String(error)),
    )
  }
  const from = staged.clock.now()
  let closedAfterMs: number | undefined
  const close = (timeoutMs: number): void => {
    void staged.app.close({ timeoutMs }).then(() => {
      closedAfterMs = staged.clock.now() - from
    })
  }
  return { ...staged, backend, outcomes, note, close, closedAfterMs: () => closedAfterMs }
}

test('close waits for the sends that have begun, those that are gathered for the next call too', async () => {
  const { app, clock, queue, backend, outcomes, note, close, closedAfterMs } = await slowToSend()
  note(app.send(queue, { orderId: 'a' }))
  note(app.sendBatch(queue, [{ orderId: 'b' }, { orderId: 'c' }]))
  await clock.advance(10)
  note(app.send(queue, { orderId: 'gathered' }))
  close(10_000)
  await clock.advance(900)
  assert.deepEqual([outcomes, closedAfterMs()], [[], undefined])
  await clock.advance(1_500)
  assert.deepEqual(outcomes, ['stored', 'stored', 'stored'])
  assert.equal(backend.calls, 3)
  assert.ok((closedAfterMs() ?? 9_999) < 2_400)
})

test('a send whose schema is still asked when close is called is stored', async () => {
  const gate = Promise.withResolvers<void>()
  const payload = orderSchema.transform(async (order) => {
    await gate.promise
    return order
  }) as unknown as typeof orderSchema
  const { app, clock, queue, outcomes, note, close } = await slowToSend({ queue: { payload } })
  note(app.send(queue, { orderId: 'a' }))
  close(10_000)
  await clock.advance(500)
  gate.resolve()
  await clock.advance(2_000)
  assert.deepEqual(outcomes, ['stored'])
})

test('after timeoutMs close waits no longer, and a second close with 0 ends the wait at once', async () => {
  for (const [first, second] of [
    [300, undefined],
    [0, undefined],
    [60_000, 0],
  ] as const) {
    const { app, clock, queue, backend, outcomes, note, close, closedAfterMs } = await slowToSend()
    backend.takesMs = 100_000
    note(app.send(queue, { orderId: 'a' }))
    await clock.advance(0)
    close(first)
    if (second !== undefined) {
      await clock.advance(100)
      close(second)
    }
    await clock.advance(800)
    assert.ok((closedAfterMs() ?? 9_999) <= 600, `${first}: ${closedAfterMs()}`)
    assert.equal(outcomes.length, 1)
    assert.notEqual(outcomes[0], 'stored')
  }
})

test('the signal of a batch ends its call to the backend', async () => {
  const { app, clock, queue, backend, outcomes, note } = await slowToSend()
  backend.takesMs = 100_000
  const own = new AbortController()
  note(app.sendBatch(queue, [{ orderId: 'a' }, { orderId: 'b' }], { signal: own.signal }))
  await clock.advance(10)
  own.abort()
  await clock.advance(10)
  assert.equal(outcomes.length, 1)
  assert.notEqual(outcomes[0], 'stored')
  await closeNow(app, clock)
})

test('a second close that would wait leaves the first its time', async () => {
  const { app, clock, queue, backend, outcomes, note, close } = await slowToSend()
  backend.takesMs = 5_000
  note(app.send(queue, { orderId: 'a' }))
  await clock.advance(0)
  close(60_000)
  await clock.advance(100)
  close(1_000)
  await clock.advance(10_000)
  assert.deepEqual(outcomes, ['stored'])
})

test('what is sent by who is told of a dead letter while the app closes is stored', async () => {
  let tell = (): void => undefined
  const { app, clock, queue, outcomes, note, close, closedAfterMs } = await slowToSend({
    app: {
      onDeadLetter: async () => {
        await pause(clock, 500)
        tell()
      },
    },
  })
  app.work(queue, () => {
    throw new PermanentError('no')
  })
  // Nobody waits for it but the end of the app.
  tell = () => note(app.send(queue, { orderId: 'mail to the owner' }))
  note(app.send(queue, { orderId: 'a' }))
  await app.start()
  await clock.advance(1_100)
  assert.deepEqual(outcomes, ['stored'])
  close(10_000)
  await clock.advance(5_000)
  assert.deepEqual(outcomes, ['stored', 'stored'])
  assert.notEqual(closedAfterMs(), undefined)
})

test('a send that waits for a key that somebody holds does not hold up close', async () => {
  const store = memory()
  const transport: StageOptions['transport'] = {
    ...store,
    connect: async (context) => {
      const inner = await store.connect(context)
      const held = {
        ok: false,
        fault: { code: 'held', retryable: true, outcome: 'notApplied' },
      } as const
      return { ...inner, send: async (_queue, batch) => batch.map(() => held) }
    },
  }
  const { app, clock, queue } = await stage({ transport })
  const codes: unknown[] = []
  for (const sent of [
    app.send(queue, { orderId: 'a' }),
    app.sendBatch(queue, [{ orderId: 'b' }]),
  ]) {
    sent.catch((error: unknown) => codes.push(isMillraceError(error) && error.code))
  }
  await clock.advance(100)
  let closed = false
  void app.close({ timeoutMs: 15_000 }).then(() => {
    closed = true
  })
  await clock.advance(1_000)
  assert.deepEqual([closed, codes], [true, ['MILLRACE_CLOSED', 'MILLRACE_CLOSED']])
})

test('a schema that never answers holds up a send no longer than its signal, and the app is not kept from its end', async () => {
  const payload = orderSchema.transform(
    () => new Promise<never>(() => undefined),
  ) as unknown as typeof orderSchema
  const { app, clock, queue, outcomes, note, close, closedAfterMs } = await slowToSend({
    queue: { payload },
  })
  const asked = new AbortController()
  note(app.send(queue, { orderId: 'a' }, { signal: asked.signal }))
  note(app.sendBatch(queue, [{ orderId: 'b' }], { signal: asked.signal }))
  await clock.advance(10)
  assert.deepEqual(outcomes, [])
  asked.abort('enough')
  await clock.advance(10)
  assert.deepEqual(outcomes, ['enough', 'enough'])
  note(app.send(queue, { orderId: 'c' }))
  note(app.sendBatch(queue, [{ orderId: 'd' }]))
  close(1_000)
  await clock.advance(2_000)
  assert.deepEqual(outcomes.slice(2), ['MILLRACE_CLOSED', 'MILLRACE_CLOSED'])
  assert.ok((closedAfterMs() ?? 9_999) < 1_500)
})

test('a schema that does not answer about a send with a signal of its own keeps no app from its end', async () => {
  const payload = orderSchema.transform(
    () => new Promise<never>(() => undefined),
  ) as unknown as typeof orderSchema
  const { app, clock, queue, outcomes, note, close, closedAfterMs } = await slowToSend({
    queue: { payload },
  })
  note(app.send(queue, { orderId: 'a' }, { signal: new AbortController().signal }))
  close(1_000)
  await clock.advance(5_000)
  assert.ok((closedAfterMs() ?? 9_999) < 1_600)
  assert.equal(outcomes.length, 1)
})

test('a send that was refused holds up no close', async () => {
  const { app, clock, queue, outcomes, note, close, closedAfterMs } = await slowToSend()
  note(app.send(queue, { orderId: 1 } as never))
  note(app.sendBatch(queue, [{ orderId: 1 }] as never))
  note(app.send(queue, { orderId: 'a' }, { delayMs: -1 }))
  await clock.advance(0)
  assert.equal(outcomes.length, 3)
  close(10_000)
  await clock.advance(1_000)
  assert.ok((closedAfterMs() ?? 9_999) < 500, `${closedAfterMs()} ms`)
})

test('the end waits for each send that had begun, however often others say that they are over', async () => {
  const underWay = sendsUnderWay()
  const [first, second, third] = [underWay.begin(), underWay.begin(), underWay.begin()]
  const over: number[] = []
  const one = underWay.ended().then(() => over.push(1))
  first()
  first()
  second()
  const fourth = underWay.begin()
  const two = underWay.ended().then(() => over.push(2))
  fourth()
  const three = underWay.ended().then(() => over.push(3))
  await new Promise(setImmediate)
  assert.deepEqual(over, [])
  third()
  await Promise.all([one, two, three])
  await underWay.ended()
})
