import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasCode, type Logger, MillraceError } from 'millrace'
import { type MemoryConnector, memory } from 'millrace/memory'
import type { OutboxConnector } from 'millrace/outbox'
import type { Settled, Settlement } from '../../src/model/delivery.ts'
import type { Fault } from '../../src/model/fault.ts'
import type { Shelf, Subscription, Transport } from '../../src/transport/transport.ts'
import { closeNow, stage } from './stage.ts'

const unanswered: Fault = { code: 'unavailable', retryable: true, outcome: 'unknown' }
const notApplied: Fault = { code: 'unavailable', retryable: true, outcome: 'notApplied' }
const hang = (): Promise<never> => new Promise(() => undefined)

type Death = Extract<Settlement, { as: 'dead' }>

function isDeath(settlement: Settlement): settlement is Death {
  return settlement.as === 'dead'
}

/** A memory whose calls a test may replace while it runs. */
function breakable() {
  const store = memory()
  const broken: {
    transport?: Partial<Omit<Transport, 'shelf'>> & { readonly shelf?: Partial<Shelf> }
    subscription?: Partial<Subscription>
    /** What the calls reach that are not replaced. */
    inner?: Subscription
  } = {}
  const breaking = (inner: Subscription): Subscription => ({
    ...inner,
    receive: (options) => (broken.subscription?.receive ?? inner.receive)(options),
    settle: (batch) => (broken.subscription?.settle ?? inner.settle)(batch),
    renew: async (batch, leaseMs) =>
      (broken.subscription?.renew ?? inner.renew)?.(batch, leaseMs) ?? [],
    close: () => (broken.subscription?.close ?? inner.close)(),
  })
  const connector: MemoryConnector = {
    ...store,
    connect: async (context) => {
      const inner = await store.connect(context)
      return {
        ...inner,
        subscribe: async (queue, options) => {
          broken.inner = await (broken.transport?.subscribe ?? inner.subscribe)(queue, options)
          return breaking(broken.inner)
        },
        ...(inner.shelf && { shelf: { ...inner.shelf, ...broken.transport?.shelf } }),
        close: () => (broken.transport?.close ?? inner.close)(),
      }
    },
  }
  return { connector, broken }
}

test('close ends within 500 ms of its limit though the backend answers nothing any more', async () => {
  const { connector, broken } = breakable()
  const { app, clock, queue } = await stage({ transport: connector })
  app.work(queue, hang)
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(100)
  broken.subscription = { receive: hang, settle: hang, renew: hang, close: hang }
  broken.transport = { close: hang }
  let closed = false
  const closing = app.close({ timeoutMs: 2_000 }).then(() => {
    closed = true
  })
  await clock.advance(2_450)
  assert.equal(closed, true)
  await closing
})

test('whatever a receive throws, the next one comes, and health was false meanwhile', async () => {
  const { connector, broken } = breakable()
  const { app, clock, queue, lines } = await stage({ transport: connector })
  let runs = 0
  app.work(queue, () => void runs++)
  await app.start()
  const thrown: unknown[] = [undefined, null, 'text', 7, Symbol('x'), Object.create(null)]
  broken.subscription = { receive: () => Promise.reject(thrown.shift()) }
  await app.send(queue, { orderId: 'wakes the first receive' })
  await clock.advance(10_000)
  assert.equal(thrown.length < 6, true)
  assert.match((await app.health()).reasons.join(), /not receiving since/)
  // What is wrong now helps, and not what was wrong first.
  broken.subscription = { receive: () => Promise.reject(new Error('the disk is full')) }
  await clock.advance(10_000)
  assert.match((await app.health()).reasons.join(), /not receiving since .*the disk is full/)
  broken.subscription = {}
  await clock.advance(10_000)
  await app.send(queue, { orderId: 'b' })
  await clock.advance(100)
  assert.equal(runs, 2)
  assert.deepEqual(await app.health(), { ok: true, reasons: [] })
  assert.ok(lines.some(({ message }) => /receiving again/.test(message)))
  await closeNow(app, clock)
})

test('after an outage the next one is met with short pauses again', async () => {
  const { connector, broken } = breakable()
  const { app, clock, queue } = await stage({ transport: connector })
  const handledAt: number[] = []
  app.work(queue, () => void handledAt.push(clock.now()))
  await app.start()
  const away = { receive: () => Promise.reject(new Error('connection reset')) }
  const outage = async (ms: number): Promise<number> => {
    broken.subscription = away
    await app.send(queue, { orderId: 'wakes the receive that still waits' })
    await clock.advance(ms)
    broken.subscription = {}
    const backAt = clock.now()
    const handled = handledAt.length
    await app.send(queue, { orderId: 'a' })
    await clock.advance(10_000)
    return (handledAt[handled] ?? Number.POSITIVE_INFINITY) - backAt
  }
  const afterMinutes = await outage(300_000)
  assert.ok(afterMinutes > 1_000, `the pauses have not grown: ${afterMinutes} ms`)
  const afterMoment = await outage(50)
  assert.ok(afterMoment < 200, `${afterMoment} ms`)
  await closeNow(app, clock)
})

test('a receive that never answers is seen by health', async () => {
  const { connector, broken } = breakable()
  const { app, clock, queue } = await stage({ transport: connector })
  app.work(queue, () => undefined)
  broken.subscription = { receive: hang }
  await app.start()
  await clock.advance(19_000)
  assert.equal((await app.health()).ok, true)
  await clock.advance(2_000)
  assert.match((await app.health()).reasons.join(), /does not answer/)
  await closeNow(app, clock)
})

test('a worker whose hands are full receives nothing for long, and is well', async () => {
  const { app, clock, queue } = await stage({ queue: { handlerTimeoutMs: 600_000 } })
  app.work(queue, () => new Promise<void>((resolve) => clock.after(300_000, resolve)), {
    concurrency: 1,
  })
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(200_000)
  assert.deepEqual(await app.health(), { ok: true, reasons: [] })
  await clock.advance(200_000)
  await closeNow(app, clock)
})

test('a start that failed is seen by health, and may be tried again', async () => {
  const { connector, broken } = breakable()
  const { app, clock, queue } = await stage({ transport: connector })
  let runs = 0
  app.work(queue, () => void runs++)
  const refused = new Error('connection refused: postgres://me:hidden@db')
  broken.transport = { subscribe: () => Promise.reject(refused) }
  await assert.rejects(app.start(), (error: unknown) => {
    assert.ok(error instanceof MillraceError)
    assert.match(error.message, /^queue "orders": the backend .*connection refused/)
    assert.doesNotMatch(error.message, /hidden/)
    return true
  })
  const reasons = (await app.health()).reasons.join()
  assert.match(reasons, /start failed \(queue "orders": the backend .*connection refused/)
  assert.doesNotMatch(reasons, /hidden/)
  broken.transport = {}
  await app.start()
  await app.start()
  await app.send(queue, { orderId: 'a' })
  await clock.advance(100)
  assert.equal(runs, 1)
  assert.equal((await app.health()).ok, true)
  await closeNow(app, clock)
})

test('renewals that failed are forgotten once nothing is left to renew', async () => {
  const { connector, broken } = breakable()
  const { app, clock, queue } = await stage({ transport: connector })
  app.work(queue, () => new Promise<void>((resolve) => clock.after(12_000, resolve)))
  broken.subscription = { renew: () => Promise.reject(new Error('connection reset')) }
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(11_000)
  assert.match((await app.health()).reasons.join(), /leases cannot be renewed/)
  broken.subscription = {}
  await clock.advance(11_000)
  assert.deepEqual(await app.health(), { ok: true, reasons: [] })
  await closeNow(app, clock)
})

test('a renewal that never answers is not the last one', async () => {
  const { connector, broken } = breakable()
  const { app, clock, queue } = await stage({
    transport: connector,
    queue: { handlerTimeoutMs: 600_000 },
  })
  const ends: boolean[] = []
  app.work(queue, async (_message, ctx) => {
    await new Promise<void>((resolve) => clock.after(100_000, resolve))
    ends.push(ctx.signal.aborted)
  })
  broken.subscription = { renew: hang }
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(35_000)
  broken.subscription = {}
  await app.send(queue, { orderId: 'b' })
  await clock.advance(300_000)
  assert.equal(ends.at(-1), false)
  assert.equal((await app.admin.stats(queue)).depth, 0)
  await closeNow(app, clock)
})

test('an ack that fails three times and then works is one run', async () => {
  const { connector, broken } = breakable()
  const { app, clock, queue } = await stage({ transport: connector })
  let runs = 0
  app.work(queue, () => void runs++)
  let calls = 0
  broken.subscription = {
    settle: () => {
      if (++calls === 3) broken.subscription = {}
      return Promise.reject(new Error('connection reset'))
    },
  }
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(60_000)
  assert.deepEqual([calls, runs, app.counters()['orders']?.acked], [3, 1, 1])
  await closeNow(app, clock)
})

test('messages whose keys are held are settled beside the others, which wait for none of them', async () => {
  const { connector, broken } = breakable()
  const { app, clock, queue } = await stage({ transport: connector })
  app.work(queue, () => undefined)
  let tries = 0
  const free = Promise.withResolvers<void>()
  const held: Fault = { code: 'held', retryable: true, outcome: 'notApplied' }
  broken.subscription = {
    settle: async (batch) => {
      if (!batch.some(({ delivery }) => delivery.envelope.id === 'held')) {
        return (await broken.inner?.settle(batch)) ?? []
      }
      tries += 1
      // From the second time on this call waits in the backend for the end of a transaction.
      if (tries > 1) await free.promise
      return tries > 1
        ? ((await broken.inner?.settle(batch)) ?? [])
        : batch.map(() => ({ ok: false, fault: held }))
    },
  }
  await app.start()
  await app.send(queue, { orderId: 'a' }, { id: 'held' })
  await clock.advance(1_000)
  assert.deepEqual([tries, app.counters().orders?.acked], [2, 0])
  for (const orderId of ['b', 'c', 'd']) {
    await app.send(queue, { orderId })
    await clock.advance(100)
  }
  assert.equal(app.counters().orders?.acked, 3)
  free.resolve()
  await clock.advance(100)
  assert.deepEqual([tries, app.counters().orders?.acked], [2, 4])
  await closeNow(app, clock)
})

test('a message whose key is held for longer than its lease is settled soon after the key is free, and forgotten by health', async () => {
  const { connector, broken } = breakable()
  const { app, clock, queue } = await stage({ transport: connector })
  app.work(queue, () => undefined)
  const held: Fault = { code: 'held', retryable: true, outcome: 'notApplied' }
  broken.subscription = {
    settle: async (batch) => batch.map(() => ({ ok: false, fault: held })),
  }
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(120_000)
  assert.match((await app.health()).reasons.join(), /an open transaction holds its ordering key/)
  broken.subscription = {}
  await clock.advance(300)
  const { started, acked } = app.counters().orders ?? {}
  assert.deepEqual([started, acked, await app.health()], [1, 1, { ok: true, reasons: [] }])
  await closeNow(app, clock)
})

test('messages that wait for held keys are so many at most: then no more are received', async () => {
  const { connector, broken } = breakable()
  const { app, clock, queue } = await stage({ transport: connector })
  app.work(queue, () => undefined, { concurrency: 10 })
  const held: Fault = { code: 'held', retryable: true, outcome: 'notApplied' }
  const free = Promise.withResolvers<void>()
  const tried = new Set<string>()
  broken.subscription = {
    settle: async (batch) => {
      const isFirst = batch.every(({ delivery }) => !tried.has(delivery.envelope.id))
      for (const { delivery } of batch) tried.add(delivery.envelope.id)
      if (isFirst) return batch.map(() => ({ ok: false, fault: held }))
      await free.promise
      return (await broken.inner?.settle(batch)) ?? []
    },
  }
  await app.sendBatch(
    queue,
    Array.from({ length: 1_200 }, (_, i) => ({ orderId: `o${i}` })),
  )
  await app.start()
  await clock.advance(3_000)
  const { started = 0 } = app.counters().orders ?? {}
  assert.ok(started >= 1_000 && started <= 1_020, String(started))
  broken.subscription = {}
  free.resolve()
  await clock.advance(3_000)
  assert.equal(app.counters().orders?.acked, 1_200)
  await closeNow(app, clock)
})

test('a death whose answer was lost is announced once, and only when it is on the shelf by this very death', async () => {
  const elsewhere: Readonly<Record<string, (ours: Death) => Death>> = {
    'for another reason': (ours) => ({ ...ours, reason: 'somebody else gave up' }),
    'at another time': (ours) =>
      ours.attempt ? { ...ours, attempt: { ...ours.attempt, at: ours.attempt.at - 1 } } : ours,
  }
  const unseen = 'stored, and the shelf is away'
  for (const end of ['stored', unseen, 'cancelled', ...Object.keys(elsewhere)]) {
    const { connector, broken } = breakable()
    const get = (): Promise<never> => Promise.reject(new Error('no shelf there'))
    if (end === unseen) broken.transport = { shelf: { get } }
    const told: string[] = []
    const { app, clock, queue } = await stage({
      transport: connector,
      queue: { retry: { attempts: 1 } },
      app: { onDeadLetter: (letter) => told.push(letter.reason) },
    })
    let id = ''
    app.work(queue, () => {
      throw new Error('no')
    })
    // The next try does not get through, which says nothing about the one before.
    const again = async (batch: readonly unknown[]): Promise<readonly Settled[]> => {
      broken.subscription = {}
      return batch.map(() => ({ ok: false, fault: notApplied }))
    }
    broken.subscription = {
      settle: async (batch) => {
        const theirs = elsewhere[end]
        if (end === 'cancelled') await app.admin.messages.cancel(queue, id)
        else await broken.inner?.settle(theirs ? batch.filter(isDeath).map(theirs) : batch)
        broken.subscription = { settle: again }
        return batch.map(() => ({ ok: false, fault: unanswered }))
      },
    }
    id = (await app.send(queue, { orderId: 'a' })).id
    await app.start()
    await clock.advance(60_000)
    const { dead, lost } = app.counters().orders ?? {}
    assert.deepEqual(
      [end, told.length, dead, lost],
      [end, ...(end === 'stored' ? [1, 1, 0] : [0, 0, 1])],
    )
    await closeNow(app, clock)
  }
})

test('a backend that comes back while the app closes keeps no subscription', async () => {
  const { connector, broken } = breakable()
  const { app, clock, queue } = await stage({ transport: connector })
  app.work(queue, () => undefined)
  let subscribed: (subscription: Subscription) => void = () => undefined
  broken.transport = { subscribe: () => new Promise((resolve) => (subscribed = resolve)) }
  const starting = app.start()
  await closeNow(app, clock)
  let closed = false
  const late = {
    close: async () => {
      closed = true
    },
  }
  subscribed(late as Subscription)
  await starting
  assert.equal(closed, true)
})

test('a start that fails because a close has ended its connection says that it was closed', async () => {
  const { connector, broken } = breakable()
  const { app, clock, queue } = await stage({ transport: connector })
  app.work(queue, () => undefined)
  const gone = Promise.withResolvers<never>()
  broken.transport = { subscribe: () => gone.promise }
  const starting = assert.rejects(app.start(), { code: 'MILLRACE_CLOSED', message: /starting/ })
  await closeNow(app, clock)
  gone.reject(new Error('write after end'))
  await starting
})

test('an outbox whose relay gets through no more is seen by health after a minute', async () => {
  const lost = { away: false }
  const outbox: OutboxConnector = {
    name: 'outbox',
    connect: async () => ({
      name: 'outbox',
      databaseId: 'elsewhere',
      transaction: () => undefined,
      relay: async () => {
        if (lost.away) throw new Error('no database there')
        return { taken: 0, published: 0, failed: [] }
      },
      lag: async () => ({ rows: 0, ageMs: 0 }),
      close: async () => undefined,
    }),
  }
  const { app, clock } = await stage({ app: { outbox } })
  await app.start()
  await clock.advance(120_000)
  lost.away = true
  await clock.advance(58_000)
  assert.equal((await app.health()).ok, true)
  await clock.advance(4_000)
  assert.match((await app.health()).reasons.join(), /relay has not got through since 2026-/)
  lost.away = false
  await clock.advance(31_000)
  assert.deepEqual(await app.health(), { ok: true, reasons: [] })
  await closeNow(app, clock)
})

test('a logger that throws changes nothing', async () => {
  const fail = (): never => {
    throw new Error('no space left on device')
  }
  const logger: Logger = { debug: fail, info: fail, warn: fail, error: fail }
  const { app, clock, queue } = await stage({
    app: { logger },
    queue: { retry: { attempts: 2, baseMs: 1, maxMs: 1 }, handlerTimeoutMs: 1_000 },
  })
  app.work(queue, (message) => {
    if (message.payload.orderId === 'stuck') return hang()
    throw new Error('always')
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  const stuck = await app.send(queue, { orderId: 'stuck' })
  await app.start()
  await clock.advance(60_000)
  assert.equal((await app.admin.deadLetters.show(queue, id))?.attempts.length, 2)
  assert.equal((await app.admin.deadLetters.show(queue, stuck.id))?.attempts.length, 2)
  await closeNow(app, clock)
})

test('a depth that cannot be read is a backend that is away, not an error of a driver', async () => {
  const store = memory()
  const { app, clock, queue } = await stage({
    transport: {
      ...store,
      connect: async (context) => {
        const inner = await store.connect(context)
        const browse = inner.browse && {
          ...inner.browse,
          gauge: () => Promise.reject(new Error('connect ECONNREFUSED')),
        }
        return {
          ...inner,
          ...(browse ? { browse } : {}),
          traits: { ...inner.traits, capacity: 'sampled' },
        }
      },
    },
  })
  await assert.rejects(app.send(queue, { orderId: 'a' }), (error: unknown) =>
    hasCode(error, 'MILLRACE_UNAVAILABLE'),
  )
  await closeNow(app, clock)
})

test('a receive that ends with an error because the app closes is no failure of the backend', async () => {
  const { connector, broken } = breakable()
  broken.subscription = {
    receive: ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('cut')))
      }),
  }
  const { app, clock, queue, lines } = await stage({ transport: connector })
  app.work(queue, () => undefined)
  await app.start()
  await clock.advance(100)
  await closeNow(app, clock)
  assert.deepEqual(lines, [])
})
