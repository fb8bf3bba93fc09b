import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineQueue, type HandlerContext, hasCode, MillraceError } from 'millrace'
import { memory } from 'millrace/memory'
import { memoryInbox } from 'millrace/testing'
import { closeNow, orderSchema, stage } from './stage.ts'

/** Queue and inbox in one memory: effect, key, fence and ack commit together. */
async function shared(queue = {}) {
  const store = memory()
  return stage({
    transport: store,
    queue: { idempotencyKey: (payload) => payload.orderId, ...queue },
    app: { inbox: memoryInbox({ transport: store }) },
  })
}

test('a duplicate finds its key: acked without calling the handler, and counted', async () => {
  const { app, clock, queue } = await shared()
  let effects = 0
  app.work(queue, (_message, ctx) => ctx.tx(() => void effects++))
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(100)
  await app.send(queue, { orderId: 'a' })
  await clock.advance(100)
  assert.equal(effects, 1)
  const counters = app.counters()['orders']
  assert.deepEqual([counters?.started, counters?.duplicates, counters?.acked], [1, 1, 2])
  await closeNow(app, clock)
})

test('a handler that never calls ctx.tx is recorded at the ack', async () => {
  const { app, clock, queue } = await shared()
  let runs = 0
  app.work(queue, () => void runs++)
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(100)
  await app.send(queue, { orderId: 'a' })
  await clock.advance(100)
  assert.equal(runs, 1)
  await closeNow(app, clock)
})

test('two runs of one key at the same time commit one effect; the other ends as a duplicate', async () => {
  const { app, clock, queue } = await shared()
  let committed = 0
  const codes: string[] = []
  app.work(
    queue,
    async (_message, ctx) => {
      await new Promise<void>((resolve) => clock.after(1_000, resolve))
      try {
        await ctx.tx(() => undefined)
        committed++
      } catch (error) {
        codes.push((error as MillraceError).code)
        throw error
      }
    },
    { concurrency: 2 },
  )
  await app.sendBatch(queue, [{ orderId: 'a' }, { orderId: 'a' }])
  await app.start()
  await clock.advance(5_000)
  assert.equal(committed, 1)
  assert.deepEqual(codes, ['MILLRACE_DUPLICATE'])
  const { acked, duplicates, released, dead } = app.counters()['orders'] ?? {}
  assert.deepEqual([acked, duplicates, released, dead], [2, 1, 0, 0])
  await closeNow(app, clock)
})

test('an effect that fails leaves nothing: the message is tried again and its key is new', async () => {
  const { app, clock, queue } = await shared()
  const seen: number[] = []
  app.work(queue, (message, ctx) =>
    ctx.tx(() => {
      seen.push(message.attempt)
      if (message.attempt === 1) throw new Error('the database said no')
    }),
  )
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(60_000)
  assert.deepEqual(seen, [1, 2])
  assert.equal(app.counters()['orders']?.acked, 1)
  await closeNow(app, clock)
})

/** The inbox is a store of its own: the ack follows the commit. */
async function apart() {
  return stage({
    queue: { idempotencyKey: (payload) => payload.orderId },
    app: { inbox: memoryInbox() },
  })
}

for (const [where, open] of Object.entries({ 'one store': shared, 'two stores': apart }))
  test(`${where}: a failure after the commit is told, then once a minute how many, and the messages stay acked`, async () => {
    const { app, clock, queue, lines } = await open()
    let runs = 0
    app.work(queue, async (_message, ctx) => {
      runs++
      await ctx.tx(() => undefined)
      throw new Error('after the fact')
    })
    const told = (): readonly string[] =>
      lines.flatMap(({ level, message }) =>
        level === 'warn' && message.includes('were committed')
          ? ['many']
          : message.includes('after its effect')
            ? ['one']
            : [],
      )
    for (const orderId of ['a', 'b', 'c']) await app.send(queue, { orderId })
    await app.start()
    await clock.advance(50_000)
    assert.deepEqual([runs, app.counters()['orders']?.acked, told()], [3, 3, ['one']])
    await clock.advance(550_000)
    await app.send(queue, { orderId: 'd' })
    await clock.advance(1_000)
    assert.deepEqual([runs, app.counters()['orders']?.acked, told()], [4, 4, ['one', 'many']])
    assert.ok(lines.some(({ message }) => message.includes('3 handlers failed')))
    await closeNow(app, clock)
  })

test('a second ctx.tx after a commit leaves no dead letter, and close tells of those that nobody was told of yet', async () => {
  const { app, clock, queue, lines } = await shared({ retry: { attempts: 2 } })
  let second = 0
  app.work(queue, async (_message, ctx) => {
    await ctx.tx(() => undefined)
    await ctx.tx(() => void second++)
  })
  const told = (): readonly string[] =>
    lines.flatMap(({ level, message }) => (level === 'warn' ? [message] : []))
  for (const orderId of ['a', 'b', 'c']) await app.send(queue, { orderId })
  await app.start()
  await clock.advance(50_000)
  assert.deepEqual([second, app.counters()['orders']?.acked, told().length], [0, 3, 1])
  assert.deepEqual((await app.admin.deadLetters.list(queue)).items, [])
  await closeNow(app, clock)
  assert.equal(told().length, 2)
  assert.match(told()[1] ?? '', /2 handlers failed after their effects were committed, .* twice/)
})

test('a second ctx.tx after one that failed makes a dead letter', async () => {
  const { app, clock, queue } = await shared()
  app.work(queue, async (_message, ctx) => {
    await ctx
      .tx(() => {
        throw new Error('the database said no')
      })
      .catch(() => undefined)
    await ctx.tx(() => undefined)
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(1_000)
  const letter = await app.admin.deadLetters.show(queue, id)
  assert.equal(letter?.attempts[0]?.code, 'MILLRACE_TX_ONCE')
  await closeNow(app, clock)
})

test('ctx.tx runs once per attempt, needs an inbox, and ends with the handler', async () => {
  const { app, clock, queue } = await shared({ retry: { attempts: 1 } })
  const codes: string[] = []
  let late: HandlerContext<unknown> | undefined
  app.work(queue, async (message, ctx) => {
    late = ctx
    await ctx.tx(() => undefined)
    await ctx.tx(() => undefined).catch((error: MillraceError) => codes.push(error.code))
    assert.equal(message.attempt, 1)
  })
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(1_000)
  assert.deepEqual(codes, ['MILLRACE_TX_ONCE'])
  await assert.rejects(
    async () => late?.tx(() => undefined),
    (error: unknown) => hasCode(error, 'MILLRACE_CONTEXT_CLOSED'),
  )
  await assert.rejects(
    async () => late?.send(queue, { orderId: 'late' }),
    (error: unknown) => hasCode(error, 'MILLRACE_CONTEXT_CLOSED'),
  )
  assert.equal((await app.admin.stats(queue)).depth, 0)
  await closeNow(app, clock)

  const bare = await stage({ queue: { retry: { attempts: 1 } } })
  bare.app.work(bare.queue, (_message, ctx) => ctx.tx(() => undefined))
  const { id } = await bare.app.send(bare.queue, { orderId: 'a' })
  await bare.app.start()
  await bare.clock.advance(1_000)
  const letter = await bare.app.admin.deadLetters.show(bare.queue, id)
  assert.equal(letter?.attempts[0]?.code, 'MILLRACE_INBOX_REQUIRED')
  await closeNow(bare.app, bare.clock)
})

test('ctx.tx without a function says so, and the message is dead at once', async () => {
  const { app, clock, queue } = await shared()
  app.work(queue, async (_message, ctx) => {
    await Reflect.apply(ctx.tx, ctx, [{ orderId: 'a' }])
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(100)
  const letter = await app.admin.deadLetters.show(queue, id)
  assert.equal(letter?.errorClass, 'permanent')
  assert.match(letter.reason, /ctx\.tx: expected a function, got an object .*INVALID_OPTIONS/)
  await closeNow(app, clock)
})

test('ctx.send inside ctx.tx commits or vanishes with it, awaited or not', async () => {
  const { app, clock, queue } = await shared({ retry: { attempts: 2, baseMs: 1, maxMs: 1 } })
  const handled: string[] = []
  app.work(queue, async (message, ctx) => {
    const { orderId } = message.payload
    handled.push(`${orderId} ${message.attempt}`)
    if (orderId !== 'parent') return
    await ctx.tx(() => {
      void ctx.send(queue, { orderId: `child-${message.attempt}` })
      if (message.attempt === 1) throw new Error('rolled back')
    })
  })
  await app.send(queue, { orderId: 'parent' })
  await app.start()
  await clock.advance(10_000)
  assert.deepEqual(handled, ['parent 1', 'parent 2', 'child-2 1'])
  await closeNow(app, clock)
})

test('ctx.send inside ctx.tx takes the options that app.send takes', async () => {
  const { app, clock, queue } = await shared()
  app.work(queue, async (message, ctx) => {
    if (message.payload.orderId !== 'parent') return
    const options = { id: 'child', delayMs: 60_000, priority: 7, idempotencyKey: 'key' }
    await ctx.tx(() => void ctx.send(queue, { orderId: 'child' }, options))
  })
  await app.send(queue, { orderId: 'parent' })
  await app.start()
  await clock.advance(1_000)
  const child = await app.admin.messages.get(queue, 'child')
  assert.deepEqual([child?.state, child?.priority, child?.idempotencyKey], ['scheduled', 7, 'key'])
  await closeNow(app, clock)
})

test('a tx that the handler names itself is the one that ctx.send uses, inside ctx.tx, too', async () => {
  const { app, clock, queue } = await shared()
  let code: unknown
  app.work(queue, async (message, ctx) => {
    if (message.payload.orderId !== 'parent') return
    await ctx.tx(() => {
      ctx.send(queue, { orderId: 'child' }, { tx: { of: 'another database' } }).catch((error) => {
        code = error.code
      })
    })
  })
  await app.send(queue, { orderId: 'parent' })
  await app.start()
  await clock.advance(1_000)
  assert.equal(code, 'MILLRACE_FOREIGN_TRANSACTION')
  assert.equal(app.counters()['orders']?.started, 1)
  await closeNow(app, clock)
})

test('a send that fails inside ctx.tx fails the transaction, though nobody awaited it', async () => {
  const { app, clock, queue } = await shared({ retry: { attempts: 1 } })
  app.work(queue, async (message, ctx) => {
    if (message.payload.orderId !== 'parent') return
    await ctx.tx(() => {
      void ctx.send(queue, { orderId: 7 } as unknown as { orderId: string })
    })
  })
  const { id } = await app.send(queue, { orderId: 'parent' })
  await app.start()
  await clock.advance(1_000)
  const letter = await app.admin.deadLetters.show(queue, id)
  assert.equal(letter?.attempts[0]?.code, 'MILLRACE_INVALID_PAYLOAD')
  await closeNow(app, clock)
})

test('a send that follows another one inside ctx.tx belongs to the transaction, too, awaited or not', async () => {
  const store = memory()
  const payload = orderSchema.refine(async () => true)
  const slow = defineQueue({ name: 'slow', owner: 'team-orders', payload })
  const { app, clock, queue } = await stage({
    transport: store,
    queue: { retry: { attempts: 1 } },
    app: { inbox: memoryInbox({ transport: store }) },
    beside: [slow],
  })
  const wrong = { orderId: 7 } as unknown as { orderId: string }
  app.work(queue, (message, ctx) => {
    const second = message.payload.orderId === 'good' ? { orderId: 'second' } : wrong
    return ctx.tx(() => {
      const first = ctx.send(slow, { orderId: 'first' })
      first.then(() => ctx.send(slow, second)).catch(() => undefined)
    })
  })
  const bad = await app.send(queue, { orderId: 'bad' })
  await app.send(queue, { orderId: 'good' })
  await app.start()
  await clock.advance(1_000)
  const letter = await app.admin.deadLetters.show(queue, bad.id)
  assert.equal(letter?.attempts[0]?.code, 'MILLRACE_INVALID_PAYLOAD')
  assert.equal((await app.admin.stats(slow)).depth, 2)
  await closeNow(app, clock)
})

test('a run that lost its claim cannot commit, and learns why', async () => {
  const { app, clock, queue } = await shared()
  let failure: unknown
  app.work(queue, async (_message, ctx) => {
    await new Promise<void>((resolve) => clock.after(500, resolve))
    await ctx
      .tx(() => undefined)
      .catch((error: unknown) => {
        failure = error
      })
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(100)
  await app.admin.messages.cancel(queue, id)
  await clock.advance(1_000)
  assert.ok(hasCode(failure, 'MILLRACE_LEASE_LOST'), String(failure))
  const counters = app.counters()['orders']
  assert.deepEqual([counters?.acked, counters?.lost], [0, 1])
  await app.send(queue, { orderId: 'a' })
  await clock.advance(1_000)
  assert.equal(app.counters()['orders']?.acked, 1, 'its key was not recorded')
  await closeNow(app, clock)
})

test('an effect that its time runs out in commits nothing and is a failed attempt like any other, settled at once', async () => {
  const { app, clock, queue } = await shared({
    handlerTimeoutMs: 500,
    retry: { attempts: 2, baseMs: 10, maxMs: 10 },
  })
  const attempts: number[] = []
  app.work(queue, (message, ctx) => {
    attempts.push(message.attempt)
    return ctx.tx(() => new Promise<void>((resolve) => clock.after(800, resolve)))
  })
  await app.send(queue, { orderId: 'a' })
  await app.start()
  // Long before a lease would end: a session has none that would.
  await clock.advance(3_000)
  assert.deepEqual(attempts, [1, 2])
  assert.deepEqual([app.counters()['orders']?.lost, app.counters()['orders']?.dead], [0, 1])
  const [letter] = (await app.admin.deadLetters.list(queue)).items
  assert.match(letter?.reason ?? '', /took longer than handlerTimeoutMs/)
  await closeNow(app, clock)
})

test('an effect whose turn comes when its time is over is not begun', async () => {
  const { app, clock, queue } = await shared({ handlerTimeoutMs: 500, retry: { attempts: 1 } })
  const wait = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve))
  const began: string[] = []
  app.work(
    queue,
    async ({ headers }, ctx) => {
      const who = headers['who'] ?? ''
      if (who === 'late') await wait(150)
      await ctx.tx(async () => {
        began.push(who)
        await wait(450)
        throw new Error('no effect')
      })
    },
    { concurrency: 2 },
  )
  await app.start()
  await app.send(queue, { orderId: 'a' }, { headers: { who: 'late' } })
  await clock.advance(100)
  // Ends 50 ms after the time of the other, which waits for it: they have one key.
  await app.send(queue, { orderId: 'a' }, { headers: { who: 'first' } })
  await clock.advance(2_000)
  assert.deepEqual([began, app.counters()['orders']?.dead], [['first'], 2])
  await closeNow(app, clock)
})

test('what goes wrong in an effect whose message is lost means that, unless it says more itself', async () => {
  const { app, clock, queue } = await shared()
  const unknown = new MillraceError('MILLRACE_OUTCOME_UNKNOWN', 'the answer to COMMIT was lost')
  const errors = [new Error('the server ended the connection'), unknown]
  const codes: string[] = []
  app.work(queue, async (_message, ctx) => {
    const failing = async (): Promise<void> => {
      await new Promise<void>((resolve) => clock.after(15_000, resolve))
      throw errors.shift()
    }
    await ctx.tx(failing).catch(({ code }: MillraceError) => void codes.push(code))
  })
  await app.start()
  for (const orderId of ['a', 'b']) {
    const { id } = await app.send(queue, { orderId })
    await clock.advance(100)
    await app.admin.messages.cancel(queue, id)
    await clock.advance(20_000)
  }
  assert.deepEqual(codes, ['MILLRACE_LEASE_LOST', 'MILLRACE_OUTCOME_UNKNOWN'])
  await closeNow(app, clock)
})

test('with the inbox in another store the key alone decides', async () => {
  const rows: string[] = []
  const { app, clock, queue } = await stage({
    queue: { idempotencyKey: (payload) => payload.orderId },
    app: { inbox: memoryInbox({ tx: rows }) },
  })
  app.work(queue, (message, ctx) =>
    ctx.tx((tx) => void (tx as string[]).push(message.payload.orderId)),
  )
  await app.send(queue, { orderId: 'a' })
  await app.send(queue, { orderId: 'a' })
  await app.send(queue, { orderId: 'b' })
  await app.start()
  await clock.advance(1_000)
  assert.deepEqual(rows.sort(), ['a', 'b'])
  await closeNow(app, clock)
})

test('a redrive of what the inbox may have forgotten asks for force', async () => {
  const { app, clock, queue, open } = await shared({ retry: { attempts: 1 } })
  app.work(queue, () => {
    throw new Error('no')
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(1_000)
  // No worker waits through the two months, a receive every five seconds.
  await closeNow(app, clock)
  await clock.advance(60 * 86_400_000)
  const later = await open()
  const { deadLetters } = later.admin
  const tooOld = (error: unknown): boolean => hasCode(error, 'MILLRACE_REDRIVE_TOO_OLD')
  const refuse = async (): Promise<void> => {
    await assert.rejects(deadLetters.redrive(queue, { ids: [id] }), tooOld)
    await assert.rejects(deadLetters.redrive(queue, { filter: {} }), tooOld)
  }
  await refuse()
  const forced = await deadLetters.redrive(queue, { ids: [id], force: true })
  assert.equal(forced.moved, 1)
  // It dies anew, but what its first runs may have done is as old as before.
  later.work(queue, () => {
    throw new Error('no')
  })
  await later.start()
  await clock.advance(1_000)
  assert.equal((await later.admin.stats(queue)).dead, 1)
  await refuse()
  await closeNow(later, clock)
})

test('what is just as old as the inbox remembers may be redriven, and nothing older', async () => {
  const store = memory()
  const ttlMs = 30 * 86_400_000
  const { app, clock, queue, open } = await stage({
    transport: store,
    queue: { retry: { attempts: 1 } },
    app: { inbox: memoryInbox({ transport: store, ttlMs }) },
  })
  app.work(queue, () => {
    throw new Error('no')
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(1_000)
  const letter = await app.admin.deadLetters.show(queue, id)
  await closeNow(app, clock)
  const { deadLetters } = (await open()).admin
  await clock.advance((letter?.attempts[0]?.at ?? 0) + ttlMs - clock.now())
  const redrive = () => deadLetters.redrive(queue, { ids: [id], dryRun: true })
  assert.equal((await redrive()).matched, 1)
  await clock.advance(1)
  await assert.rejects(redrive(), { code: 'MILLRACE_REDRIVE_TOO_OLD' })
})

test('what ctx.tx left behind cannot send into a transaction that has ended', async () => {
  const { app, clock, queue, lines } = await shared()
  const codes: unknown[] = []
  app.work(queue, async (message, ctx) => {
    if (message.payload.orderId !== 'parent') return
    let after: Promise<unknown> = Promise.resolve()
    await ctx.tx(() => {
      after = new Promise<void>((resolve) => clock.after(10, resolve))
        .then(() => ctx.send(queue, { orderId: 'late' }))
        .catch((error: MillraceError) => codes.push(error.code))
    })
    await after
    await ctx.send(queue, { orderId: 'in time' })
  })
  await app.send(queue, { orderId: 'parent' })
  await app.start()
  await clock.advance(1_000)
  assert.deepEqual(codes, ['MILLRACE_CONTEXT_CLOSED'])
  assert.equal(app.counters()['orders']?.acked, 2)
  assert.ok(lines.some(({ level, message }) => level === 'error' && /the ctx\.tx/.test(message)))
  await closeNow(app, clock)
})
