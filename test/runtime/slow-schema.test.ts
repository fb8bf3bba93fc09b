import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closeNow, orderSchema, type StageOptions, stage } from './stage.ts'

const never: Promise<never> = new Promise(() => undefined)

/** One whose schema asks somebody else, who answers as `answers` says. Sends are judged at once. */
async function asking(options: StageOptions = {}) {
  const answers = new Map<string, Promise<unknown>>()
  const payload = orderSchema.transform(async (order) => {
    await answers.get(order.orderId)
    return order
  }) as unknown as typeof orderSchema
  const staged = await stage({
    ...options,
    queue: {
      handlerTimeoutMs: 1_000,
      retry: { attempts: 2 },
      ...options.queue,
      payload,
    },
  })
  const { app, queue, clock } = staged
  const ran: string[] = []
  const sendAll = async (...orderIds: readonly string[]): Promise<void> => {
    for (const orderId of orderIds) await app.send(queue, { orderId })
  }
  const later = (ms: number): Promise<void> => new Promise((resolve) => clock.after(ms, resolve))
  return { ...staged, answers, ran, sendAll, later }
}

test('a schema that is slow about one message holds up no other, nor the next receive', async () => {
  const { app, clock, queue, answers, ran, sendAll, later } = await asking()
  app.work(queue, ({ payload }) => void ran.push(payload.orderId), { concurrency: 3 })
  await sendAll('a', 'slow', 'b', 'c', 'd', 'e')
  answers.set('slow', later(800))
  await app.start()
  await clock.advance(100)
  assert.deepEqual(ran, ['a', 'b', 'c', 'd', 'e'])
  await clock.advance(800)
  assert.deepEqual(ran, ['a', 'b', 'c', 'd', 'e', 'slow'])
  assert.equal(app.counters()['orders']?.acked, 6)
  await closeNow(app, clock)
})

test('a schema that never answers is a timeout of the attempt: counted, retried, dead in the end; the slot is free', async () => {
  const { app, clock, queue, answers, ran, sendAll, lines } = await asking()
  app.work(queue, ({ payload }) => void ran.push(payload.orderId), { concurrency: 1 })
  await sendAll('hangs', 'b', 'c')
  answers.set('hangs', never)
  await app.start()
  await clock.advance(999)
  assert.deepEqual(ran, [])
  await clock.advance(10_000)
  assert.deepEqual(ran, ['b', 'c'])
  const [letter] = (await app.admin.deadLetters.list(queue)).items
  assert.deepEqual(
    letter?.attempts.map(({ code, errorClass }) => [code, errorClass]),
    [
      ['MILLRACE_HANDLER_TIMEOUT', 'transient'],
      ['MILLRACE_HANDLER_TIMEOUT', 'transient'],
    ],
  )
  assert.match(letter?.reason ?? '', /schema .* handlerTimeoutMs \(1000 ms\)/)
  assert.equal(lines.filter(({ message }) => message.includes('its slot is freed')).length, 2)
  await closeNow(app, clock)
})

test('health tells of schemas that still have not answered, until they do', async () => {
  const { app, clock, queue, answers, sendAll } = await asking({
    queue: { retry: { attempts: 1 } },
  })
  const answer = Promise.withResolvers<void>()
  app.work(queue, () => undefined)
  await sendAll('hangs')
  answers.set('hangs', answer.promise)
  await app.start()
  await clock.advance(2_000)
  assert.deepEqual((await app.health()).reasons, [
    'queue "orders": 1 schema call(s) still run after their timeout',
  ])
  assert.equal(app.counters()['orders']?.abandoned, 1)
  answer.resolve()
  await clock.advance(10)
  assert.deepEqual((await app.health()).reasons, [])
  assert.equal(app.counters()['orders']?.abandoned, 0)
  assert.equal(app.counters()['orders']?.started, 0)
  await closeNow(app, clock)
})

test('what is being judged counts as one of those that run side by side', async () => {
  const { app, clock, queue, answers, sendAll, later } = await asking({
    queue: { handlerTimeoutMs: 60_000 },
  })
  let now = 0
  let most = 0
  app.work(
    queue,
    async () => {
      most = Math.max(most, ++now)
      await later(50)
      now--
    },
    { concurrency: 2 },
  )
  const all = Array.from({ length: 30 }, (_, i) => `o${i}`)
  await sendAll(...all)
  for (const [i, orderId] of all.entries()) answers.set(orderId, later(1 + ((i * 7) % 100)))
  await app.start()
  await clock.advance(20)
  assert.equal((await app.admin.stats(queue)).inFlight, 2)
  await clock.advance(10_000)
  assert.equal(app.counters()['orders']?.acked, 30)
  assert.equal(most, 2)
  await closeNow(app, clock)
})

test('the time that the schema took is taken from the handler', async () => {
  const { app, clock, queue, answers, sendAll, later } = await asking({
    queue: { retry: { attempts: 1 } },
  })
  const from = clock.now()
  let firedAt = 0
  app.work(
    queue,
    (_message, ctx) =>
      new Promise((_resolve, reject) => {
        ctx.signal.addEventListener('abort', () => {
          firedAt = clock.now() - from
          reject(ctx.signal.reason)
        })
      }),
  )
  await sendAll('a')
  answers.set('a', later(700))
  await app.start()
  await clock.advance(3_000)
  assert.equal(firedAt, 1_000)
  await closeNow(app, clock)
})

test('while a schema does not answer, its message is held and no other process gets it', async () => {
  const { app, clock, queue, answers, ran, sendAll, open } = await asking({
    queue: { handlerTimeoutMs: 600_000 },
  })
  const other = await open()
  app.work(queue, ({ payload }) => void ran.push(payload.orderId))
  await sendAll('hangs')
  const answer = Promise.withResolvers<void>()
  answers.set('hangs', answer.promise)
  await app.start()
  await clock.advance(10)
  answers.clear()
  other.work(queue, ({ payload }) => void ran.push(`other ${payload.orderId}`))
  await other.start()
  await clock.advance(300_000)
  assert.deepEqual(ran, [])
  answer.resolve()
  await clock.advance(10)
  assert.deepEqual(ran, ['hangs'])
  await closeNow(other, clock)
  await closeNow(app, clock)
})

test('what a schema has not answered goes back at once when the worker stops, uncounted', async () => {
  const { app, clock, queue, answers, open } = await asking()
  app.work(queue, () => undefined)
  const { id } = await app.send(queue, { orderId: 'hangs' })
  answers.set('hangs', never)
  await app.start()
  await clock.advance(100)
  const closed = app.close({ timeoutMs: 10_000 })
  await clock.advance(300)
  await closed
  const other = await open()
  const waiting = await other.admin.messages.get(queue, id)
  assert.deepEqual([waiting?.state, waiting?.attempts], ['ready', []])
  await closeNow(other, clock)
})
