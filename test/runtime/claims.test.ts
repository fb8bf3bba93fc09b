import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue } from 'millrace'
import { memory } from 'millrace/memory'
import { memoryInbox, virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { pause } from '../../src/model/clock.ts'
import type { Settled } from '../../src/model/delivery.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Connector, Subscription, Transport } from '../../src/transport/transport.ts'
import { closeNow, stage } from './stage.ts'

const HOUR_MS = 3_600_000

const throttled: Settled = {
  ok: false,
  fault: { code: 'throttled', retryable: true, outcome: 'notApplied' },
}

/** A broker whose deliveries are ours for as long as the session lives: no lease, nothing to renew. */
function sessionBroker(
  change: (inner: Subscription) => Subscription = (inner) => inner,
  kind: 'session' | 'assignment' = 'session',
): Connector {
  const below = memory()
  const held = (inner: Subscription): Subscription => {
    const { renew: _, ...rest } = change(inner)
    return rest
  }
  return {
    name: 'session',
    connect: async (context): Promise<Transport> => {
      const inner = await below.connect(context)
      return {
        ...inner,
        traits: { ...inner.traits, claim: { kind } },
        subscribe: async (queue, options) =>
          held(await inner.subscribe(queue, { ...options, leaseMs: HOUR_MS })),
      }
    },
  }
}

test('a handler may run for as long as it is allowed where nothing is leased', async () => {
  const clock = virtualClock()
  const queue = defineQueue({
    name: 'slow',
    owner: 'team-a',
    payload: z.string(),
    handlerTimeoutMs: 600_000,
  })
  const app = await createMillrace({
    transport: sessionBroker(),
    queues: [queue],
    clock,
    logger: silentLogger,
  })
  let aborted = false
  app.work(queue, async (_message, ctx) => {
    ctx.signal.addEventListener('abort', () => {
      aborted = true
    })
    await pause(clock, 300_000)
  })
  await app.send(queue, 'a')
  await app.start()
  await clock.advance(301_000)
  const { acked, started } = app.counters()['slow'] ?? {}
  assert.deepEqual({ aborted, acked, started }, { aborted: false, acked: 1, started: 1 })
  await closeNow(app, clock)
})

for (const kind of ['session', 'assignment'] as const) {
  test(`what is held by ${kind} and cannot be settled for long is given back, as no lease ends`, async () => {
    const clock = virtualClock()
    const queue = defineQueue({ name: 'slow', owner: 'team-a', payload: z.string() })
    // As a broker in an alarm: the copy that a failed attempt needs cannot be sent.
    let alarmed = true
    const transport = sessionBroker(
      (inner) => ({
        ...inner,
        settle: (batch) =>
          alarmed && batch.some((one) => one.as === 'released' && one.attempt !== undefined)
            ? Promise.resolve(batch.map(() => throttled))
            : inner.settle(batch),
      }),
      kind,
    )
    const app = await createMillrace({ transport, queues: [queue], clock, logger: silentLogger })
    const attempts: number[] = []
    app.work(queue, (message) => {
      attempts.push(message.attempt)
      if (attempts.length < 3) throw new Error('not now')
    })
    await app.send(queue, 'a')
    await app.start()
    await clock.advance(31_000)
    assert.deepEqual(attempts, [1, 1])
    alarmed = false
    await clock.advance(60_000)
    // The second run's failure counted, once the backend took it again.
    assert.deepEqual(attempts, [1, 1, 2])
    assert.equal(app.counters()['slow']?.acked, 1)
    await closeNow(app, clock)
  })
}

test('a message whose session ended while its schema was asked does not run', async () => {
  const clock = virtualClock()
  const session = new AbortController()
  const settled: string[] = []
  const transport = sessionBroker((inner) => ({
    ...inner,
    receive: async (options) =>
      (await inner.receive(options)).map((delivery) => ({
        ...delivery,
        claim: { ...delivery.claim, lost: session.signal },
      })),
    settle: (batch) => {
      settled.push(...batch.map(({ as }) => as))
      return inner.settle(batch)
    },
  }))
  const asked = Promise.withResolvers<void>()
  let isSlow = false
  const payload = z.string().refine(async () => {
    if (isSlow) await asked.promise
    return true
  })
  const queue = defineQueue({ name: 'slow', owner: 'team-a', payload })
  const app = await createMillrace({ transport, queues: [queue], clock, logger: silentLogger })
  let runs = 0
  app.work(queue, () => void runs++)
  await app.send(queue, 'a')
  isSlow = true
  await app.start()
  await clock.advance(1_000)
  assert.equal((await app.admin.stats(queue)).inFlight, 1)
  session.abort()
  asked.resolve()
  await clock.advance(1_000)
  assert.deepEqual([runs, settled.includes('acked')], [0, false])
  await closeNow(app, clock)
})

const unnamed = (inner: Subscription): Subscription => ({
  ...inner,
  receive: async (options) =>
    (await inner.receive(options)).map((delivery) => ({ ...delivery, idIsPassing: true })),
})

test('a message without an id that stays runs on a queue with an inbox only where the payload gives its key', async () => {
  const clock = virtualClock()
  const transport = sessionBroker(unnamed)
  const plain = defineQueue({ name: 'plain', owner: 'team-a', payload: z.string() })
  const keyed = defineQueue({
    name: 'keyed',
    owner: 'team-a',
    payload: z.string(),
    idempotencyKey: (payload) => payload,
  })
  const ran: string[] = []
  const open = async (more: object) => {
    const options = { transport, queues: [plain, keyed], clock, logger: silentLogger }
    const app = await createMillrace({ ...options, ...more })
    for (const queue of app.queues) {
      app.work(queue, (message) => void ran.push(`${queue.name} ${message.payload}`))
    }
    await app.start()
    return app
  }
  const withInbox = await open({ inbox: memoryInbox({ transport: memory() }) })
  await withInbox.send(plain, 'a')
  await withInbox.send(keyed, 'b')
  await withInbox.send(plain, 'c', { idempotencyKey: 'c' })
  await clock.advance(100)
  assert.deepEqual(ran, ['keyed b', 'plain c'])
  const { items } = await withInbox.admin.deadLetters.list(plain, {})
  assert.match(
    items[0]?.reason ?? '',
    /^the message has no key: it came without an id, .* give queue "plain" an idempotencyKey, or let its sender set a message id/,
  )
  assert.equal((await withInbox.admin.deadLetters.show(plain, items[0]?.id ?? ''))?.payload, 'a')
  await closeNow(withInbox, clock)
  const without = await open({})
  await without.send(plain, 'd')
  await clock.advance(100)
  assert.deepEqual(ran.slice(2), ['plain d'])
  await closeNow(without, clock)
})

for (const [what, wakesUp] of [
  ['whose database goes on', () => undefined],
  ['whose database has ended the connection', () => Promise.reject(new Error('it is closed'))],
] as const) {
  test(`a process that was stopped past its lease commits nothing in another database, before any timer has told it: one ${what}`, async () => {
    let stoppedMs = 0
    const elsewhere = memory()
    const clock = virtualClock()
    // What `now` says after SIGCONT; the timers have not run yet.
    const jumping = { now: () => clock.now() + stoppedMs, after: clock.after }
    const { app, queue } = await stage({
      app: { clock: jumping, inbox: memoryInbox({ transport: elsewhere }) },
    })
    const ends: unknown[] = []
    app.work(queue, async (_message, ctx) => {
      const committed = ctx.tx(() => {
        const isFirst = stoppedMs === 0
        stoppedMs = 40_000
        return isFirst ? wakesUp() : undefined
      })
      await committed.then(
        () => ends.push('committed'),
        (error: { readonly code?: string }) => ends.push(error.code),
      )
    })
    await app.send(queue, { orderId: 'a' })
    await app.start()
    await clock.advance(100)
    // The second run of the message, which time has not stopped.
    assert.deepEqual(ends, ['MILLRACE_LEASE_LOST', 'committed'])
    assert.equal(app.counters()['orders']?.acked, 1)
    await closeNow(app, clock)
  })
}

for (const how of ['a lease and no inbox', 'a lease and an inbox', 'a session'] as const) {
  test(`a process that was stopped past its claim begins nothing of what it had in hand: ${how}`, async () => {
    let stoppedMs = 0
    let isOver = false
    const clock = virtualClock()
    // What `now` says after SIGCONT; the timers have not run yet.
    const jumping = { now: () => clock.now() + stoppedMs, after: clock.after }
    const session = sessionBroker((inner) => ({
      ...inner,
      receive: async (options) =>
        (await inner.receive(options)).map((delivery) => {
          const { ending, lost } = delivery.claim
          const claim = { expiresAt: undefined, ending, lost, isOver: () => isOver }
          return { ...delivery, claim }
        }),
    }))
    const { app, queue } = await stage({
      app: {
        clock: jumping,
        ...(how === 'a session' && { transport: session }),
        ...(how === 'a lease and an inbox' && { inbox: memoryInbox({ transport: memory() }) }),
      },
    })
    const begun: string[] = []
    app.work(
      queue,
      ({ payload: { orderId }, attempt }) => {
        begun.push(`${orderId} ${attempt}${isOver ? ', though it is over' : ''}`)
        if (begun.length > 1) return
        if (how === 'a session') isOver = true
        else stoppedMs = 40_000
      },
      { concurrency: 3 },
    )
    await app.sendBatch(
      queue,
      ['a', 'b', 'c'].map((orderId) => ({ orderId })),
    )
    await app.start()
    await clock.advance(0)
    isOver = false
    await clock.advance(60_000)
    const ofOthers = begun.filter((one) => !one.startsWith('a'))
    // Of leases that ended a store says that their holder vanished; the first runs would have been beside somebody else's.
    assert.deepEqual(ofOthers, how === 'a session' ? ['b 1', 'c 1'] : ['b 2', 'c 2'])
    assert.equal(begun[0], 'a 1')
    await closeNow(app, clock)
  })
}
