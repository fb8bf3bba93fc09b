import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PermanentError, ThrottledError, TransientError } from 'millrace'
import { closeNow, stage } from './stage.ts'

const HOUR_MS = 3_600_000

test('attempts: 8 means eight counted runs, then dead with every attempt on record', async () => {
  const { app, clock, queue } = await stage()
  const attempts: number[] = []
  app.work(queue, (message) => {
    attempts.push(message.attempt)
    throw new Error(`no luck ${message.attempt}`)
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(10 * HOUR_MS)
  assert.deepEqual(attempts, [1, 2, 3, 4, 5, 6, 7, 8])
  const letter = await app.admin.deadLetters.show(queue, id)
  assert.equal(letter?.errorClass, 'transient')
  assert.equal(letter?.owner, 'team-orders')
  assert.equal(letter?.attempts.length, 8)
  assert.match(letter?.attempts[0]?.message ?? '', /no luck 1/)
  assert.deepEqual(letter?.payload, { orderId: 'a' })
  await closeNow(app, clock)
})

test('an attempt on record has the fields of the contract and a stack, without secrets', async () => {
  const { app, clock, queue } = await stage()
  app.work(queue, () => {
    const cause = new Error('refused https://u:s3cr3t@h/')
    throw new PermanentError(`token=s3cr3t ${'x'.repeat(20_000)}`, { cause })
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(1_000)
  const letter = await app.admin.deadLetters.show(queue, id)
  const attempt = letter?.attempts[0]
  assert.ok(attempt)
  assert.deepEqual(Object.keys(attempt), ['at', 'errorClass', 'code', 'message', 'stack'])
  assert.match(attempt.stack ?? '', /caused by Error: refused https:\/\/\[redacted\]@h\/$/)
  assert.ok(Buffer.byteLength(attempt.message) + Buffer.byteLength(attempt.stack ?? '') <= 8_192)
  assert.ok(!JSON.stringify(letter).includes('s3cr3t'))
  await closeNow(app, clock)
})

test('the k-th backoff is floor(random * min(maxMs, baseMs * 2^(k-1))), measured on the clock', async () => {
  const { app, clock, queue } = await stage({
    random: () => 0.5,
    queue: { retry: { attempts: 5, baseMs: 1_000, maxMs: 3_000 } },
  })
  const at: number[] = []
  app.work(queue, () => {
    at.push(clock.now())
    throw new TransientError('again')
  })
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(HOUR_MS)
  const gaps = at.slice(1).map((t, i) => t - (at[i] ?? 0))
  assert.deepEqual(gaps, [500, 1_000, 1_500, 1_500])
  await closeNow(app, clock)
})

test('TransientError.delayMs replaces the backoff and is capped at maxMs', async () => {
  const { app, clock, queue } = await stage({ queue: { retry: { attempts: 3, maxMs: 5_000 } } })
  const at: number[] = []
  app.work(queue, (message) => {
    at.push(clock.now())
    throw new TransientError('later', { delayMs: message.attempt === 1 ? 1_234 : 99_999_999 })
  })
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(HOUR_MS)
  assert.deepEqual(
    at.slice(1).map((t, i) => t - (at[i] ?? 0)),
    [1_234, 5_000],
  )
  await closeNow(app, clock)
})

test('a permanent error is dead after one run', async () => {
  const { app, clock, queue } = await stage()
  let runs = 0
  app.work(queue, () => {
    runs++
    throw new PermanentError('never')
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(HOUR_MS)
  assert.equal(runs, 1)
  const letter = await app.admin.deadLetters.show(queue, id)
  assert.equal(letter?.errorClass, 'permanent')
  assert.match(letter?.reason ?? '', /never/)
  await closeNow(app, clock)
})

test('throttled waits what it was told, never earlier, and spends no attempt', async () => {
  const { app, clock, queue } = await stage({ queue: { retry: { attempts: 1 } } })
  const at: { now: number; attempt: number }[] = []
  app.work(queue, (message) => {
    at.push({ now: clock.now(), attempt: message.attempt })
    if (at.length < 4) throw new ThrottledError('slow down', { retryAfterMs: 10_000 })
  })
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(HOUR_MS)
  assert.deepEqual(
    at.map((one) => one.attempt),
    [1, 1, 1, 1],
  )
  for (const [i, one] of at.slice(1).entries()) {
    const gap = one.now - (at[i]?.now ?? 0)
    assert.ok(gap >= 10_000 && gap <= 11_000, `waited ${gap}`)
  }
  assert.equal(app.counters()['orders']?.acked, 1)
  await closeNow(app, clock)
})

test('throttled for longer than 24 h since the first throttle is dead with class throttled', async () => {
  const { app, clock, queue } = await stage()
  app.work(queue, () => {
    throw new ThrottledError('slow down', { retryAfterMs: HOUR_MS })
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(23 * HOUR_MS)
  assert.equal(await app.admin.deadLetters.show(queue, id), null)
  await clock.advance(4 * HOUR_MS)
  assert.equal((await app.admin.deadLetters.show(queue, id))?.errorClass, 'throttled')
  await closeNow(app, clock)
})

test('a redriven message keeps its id and starts at attempt 1, with its old attempts on record', async () => {
  const { app, clock, queue } = await stage({
    queue: { retry: { attempts: 2, baseMs: 1, maxMs: 1 } },
  })
  const attempts: number[] = []
  const looked = Promise.withResolvers<void>()
  let broken = true
  app.work(queue, async (message) => {
    attempts.push(message.attempt)
    if (broken) throw new Error('broken')
    await looked.promise
  })
  const { id } = await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(10_000)
  broken = false
  const result = await app.admin.deadLetters.redrive(queue, { ids: [id, 'nobody'] })
  assert.deepEqual(result, { matched: 1, moved: 1, notFound: ['nobody'] })
  const waiting = await app.admin.messages.get(queue, id)
  assert.equal(waiting?.attempts.length, 2)
  looked.resolve()
  await clock.advance(10_000)
  assert.deepEqual(attempts, [1, 2, 1])
  const audit = await app.admin.deadLetters.audit(queue)
  assert.equal(audit[0]?.messageId, id)
  await closeNow(app, clock)
})

test('hostile errors are always recorded: the message is failed, its neighbours succeed', async () => {
  const { app, clock, queue } = await stage({ queue: { retry: { attempts: 1 } } })
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  const thrower = Object.defineProperty({}, 'message', {
    get: () => {
      throw new Error('gotcha')
    },
  })
  const hostile: unknown[] = [
    undefined,
    null,
    Symbol('s'),
    'text with \u0000 in it',
    new Error('\ud800 lone'),
    new Error('x'.repeat(10_000_000)),
    Object.freeze(new Error('frozen')),
    circular,
    thrower,
    new Proxy(
      {},
      {
        get: () => {
          throw new Error('proxy')
        },
      },
    ),
  ]
  app.work(queue, (message) => {
    const index = Number(message.payload.orderId)
    if (index < hostile.length) throw hostile[index]
  })
  for (let i = 0; i < hostile.length + 9; i++) await app.send(queue, { orderId: String(i) })
  await app.start()
  await clock.advance(60_000)
  const counters = app.counters()['orders']
  assert.equal(counters?.dead, hostile.length)
  assert.equal(counters?.acked, 9)
  await closeNow(app, clock)
})

test('a classify that is broken is said once for each kind, with what it did', async () => {
  const answers: readonly (() => unknown)[] = [
    () => 'permanent',
    () => ({ errorClass: 'fatal' }),
    () => Promise.reject(new Error('late')),
    () => {
      throw new TypeError('no such field')
    },
  ]
  for (const [i, answer] of answers.entries()) {
    const classify = (): undefined => answer() as undefined
    const { app, clock, queue, lines } = await stage({ queue: { classify } })
    app.work(queue, () => {
      throw new Error('no luck')
    })
    await app.send(queue, { orderId: 'a' })
    await app.start()
    await clock.advance(10 * HOUR_MS)
    const said = lines.filter(({ message }) => message.includes('its classify'))
    const what = [
      'gave "permanent"',
      'gave errorClass "fatal"',
      'gave a promise',
      'threw (no such',
    ][i]
    assert.equal(said.length, 1)
    assert.equal(said[0]?.level, 'warn')
    assert.ok(said[0]?.message.includes(`queue "orders": its classify ${what}`), said[0]?.message)
    await closeNow(app, clock)
  }
})
