import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryStore, type StoreConnector } from 'millrace/store'
import { silentLogger } from '../../src/model/logger.ts'
import { counting } from '../../src/runtime/counters.ts'
import { judging } from '../../src/runtime/judging.ts'
import { virtualClock } from '../../src/testing/virtual-clock.ts'
import { handedOut } from './handed-out.ts'
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

test('the log of a schema that does not answer names the message and its attempt', async () => {
  const told: unknown[] = []
  const error = (_message: string, fields?: unknown): void => void told.push(fields)
  const { app, clock, queue, answers } = await asking({
    app: { logger: { ...silentLogger, error } },
    queue: { retry: { attempts: 2 } },
  })
  app.work(queue, () => undefined)
  const { id } = await app.send(queue, { orderId: 'hangs' })
  answers.set('hangs', never)
  await app.start()
  await clock.advance(10_000)
  assert.deepEqual(
    told.slice(0, 2),
    [1, 2].map((attempt) => ({ queue: 'orders', messageId: id, attempt })),
  )
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

test('a schema that is asked when the worker has stopped already holds up no close', async () => {
  const kept = memoryStore()
  const gate = Promise.withResolvers<void>()
  const store: StoreConnector = {
    ...kept,
    connect: async (context) => {
      const found = await kept.connect(context)
      const read: typeof found.states.read = async (name) => {
        await gate.promise
        return found.states.read(name)
      }
      return { ...found, states: { ...found.states, read } }
    },
  }
  const { app, clock, queue, answers, sendAll } = await asking({
    app: { store },
    // What breakers are open is asked before anything is judged.
    queue: { handlerTimeoutMs: 60_000, downstream: () => 'partner', breaker: {} },
  })
  app.work(queue, () => assert.fail('it is not judged'))
  await sendAll('hangs')
  answers.set('hangs', never)
  await app.start()
  await clock.advance(100)
  let closed = false
  const closing = app.close({ timeoutMs: 30_000 }).then(() => {
    closed = true
  })
  await clock.advance(100)
  gate.resolve()
  await clock.advance(1_000)
  assert.ok(closed)
  await closing
})

test('what cannot be decided of a message that was judged is said, and its slot is free', async () => {
  const broken = new Error('the flow is broken')
  const nobody = undefined as never
  const acts: unknown[] = []
  let freed = 0
  const { queue } = await asking()
  const clock = virtualClock()
  const judged = judging({
    ...{ queue, clock, logger: silentLogger, counters: counting() },
    hands: {
      reserve: () => () => void freed++,
      settleLater: (_delivery, act) => void act(nobody).catch((cause) => acts.push(cause)),
      notify: () => undefined,
    },
    stopped: new AbortController().signal,
    judged: () => Promise.reject(broken),
  })
  const one = handedOut('a')
  judged.follow([one], [Promise.resolve({ ok: false, delivery: one, error: undefined })])
  await clock.advance(10)
  assert.deepEqual([acts, freed], [[broken], 1])
})
