import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue, hasCode } from 'millrace'
import { memory } from 'millrace/memory'
import { testApp } from 'millrace/testing'
import { closeNow, orderSchema, stage } from './stage.ts'

/** Refused in one line that has every part. */
function refusedWith(...parts: readonly string[]): (error: unknown) => true {
  return (error) => {
    const text = String(error)
    assert.ok(hasCode(error, 'MILLRACE_INVALID_OPTIONS'), text)
    assert.ok(!text.includes('\n'), text)
    for (const part of parts) assert.ok(text.includes(part), `${part} in ${text}`)
    return true
  }
}

const orders = { name: 'orders', owner: 'team', payload: orderSchema }

test('defineQueue refuses whatever is no option, at any depth, and says what it got', () => {
  const wrong: readonly (readonly [unknown, ...string[]])[] = [
    [undefined, 'expected an object of options, got undefined'],
    [null, 'expected an object of options, got null'],
    ['orders', 'expected an object of options, got "orders"'],
    [{ ...orders, retry: 5 }, 'retry: expected { attempts', 'got 5'],
    [{ ...orders, retry: null }, 'retry: expected {', 'got null'],
    [{ ...orders, retry: { attemps: 3 } }, '"retry.attemps", did you mean "retry.attempts"?'],
    [{ ...orders, capacity: 'infinite' }, 'or "unbounded", got "infinite"'],
    [{ ...orders, capacity: 5 }, 'capacity: expected {', 'got 5'],
    [{ ...orders, capacity: { maxDept: 3 } }, '"capacity.maxDept"'],
    [{ ...orders, dedupe: 5_000 }, 'dedupe: expected { windowMs }, got 5000'],
    [{ ...orders, dedupe: [] }, 'dedupe: expected { windowMs }, got an empty list'],
    [{ ...orders, fairBy: 'tenant' }, 'fairBy: expected a function, got "tenant"'],
    [{ ...orders, fairWeight: () => 1 }, 'fairWeight: has no meaning without fairBy'],
    [{ ...orders, priorities: 1 }, 'priorities: expected an integer from 2 to 10, got 1'],
    [{ ...orders, ageingMs: 0 }, 'ageingMs: expected an integer from 1 to 2592000000, got 0'],
    [{ ...orders, codec: {} }, 'codec: expected {', 'got an empty object without contentType'],
    [{ ...orders, codec: null }, 'codec: expected {', 'got null'],
    ...['a\0b', 'a\nb', 'a\u007fb', 'a\u009bb', '\ud800', ' ', ''].map(
      (owner): readonly [unknown, ...string[]] => [
        { ...orders, owner },
        'owner: expected the team or person who watches the dead letters',
      ],
    ),
    [{ ...orders, classify: 5, retry: { baseMs: 0 } }, 'classify: ', 'got 5', 'retry.baseMs'],
  ]
  for (const [options, ...parts] of wrong) {
    assert.throws(() => defineQueue(options as never), refusedWith(...parts))
  }
})

test('createMillrace refuses all wrong options at once, and says what it got', async () => {
  const transport = memory()
  await assert.rejects(
    createMillrace({
      transport,
      queues: [],
      migrate: 'yes',
      signals: 'SIGTERM',
      clock: {},
      random: 0.5,
      logger: { error() {} },
      onDeadLetter: 'page',
    } as never),
    refusedWith(
      'queues: expected at least one queue of defineQueue, got an empty list',
      'migrate: expected "auto" or "check", got "yes"',
      'signals: expected true or false, got "SIGTERM"',
      'clock: expected an object with the functions now, after, got an empty object',
      'random: expected a function, got 0.5',
      'logger: expected an object with the functions debug, info, warn, error, got an object without debug',
      'onDeadLetter: expected a function, got "page"',
    ),
  )
  for (const options of [undefined, null, 'orders']) {
    await assert.rejects(
      createMillrace(options as never),
      refusedWith('expected an object of options, got '),
    )
  }
  await assert.rejects(
    testApp(null as never),
    refusedWith('expected an object of options, got null'),
  )
  await assert.rejects(
    createMillrace({ transport, queues: [orders] } as never),
    refusedWith('queues[0]: expected what defineQueue gives', 'options of queue "orders"'),
  )
})

test('send, sendBatch, work and close refuse whatever is no option', async () => {
  const { app, clock, queue } = await stage()
  const payload = { orderId: 'a' }
  const wrong: readonly (readonly [unknown, ...string[]])[] = [
    [null, 'expected an object of options, got null'],
    ['urgent', 'expected an object of options, got "urgent"'],
    [[], 'expected an object of options, got an empty list'],
    [{ signal: 5 }, 'signal: expected an AbortSignal, got 5'],
    [{ headers: [] }, 'headers: expected an object of strings, got an empty list'],
    [{ headers: new Map([['a', 'b']]) }, 'headers: expected an object of strings'],
    [{ headers: { A: '1', a: '2' } }, 'headers["a"]: "a" is there twice'],
  ]
  for (const [options, ...parts] of wrong) {
    await assert.rejects(app.send(queue, payload, options as never), refusedWith(...parts))
    await assert.rejects(app.sendBatch(queue, [payload], options as never), refusedWith(...parts))
  }
  for (const payloads of ['abc', undefined, null]) {
    await assert.rejects(app.sendBatch(queue, payloads as never), refusedWith('expected an array'))
  }
  assert.throws(() => app.work(queue, () => 1, null as never), refusedWith('got null'))
  assert.throws(() => app.close(5 as never), refusedWith('got 5'))
  for (const timeoutMs of [-1, 86_400_001, Number.NaN, '5']) {
    assert.throws(() => app.close({ timeoutMs } as never), refusedWith('timeoutMs: expected'))
  }
  assert.equal((await app.admin.stats(queue)).depth, 0)
  // What is left of somebody's time need not be whole.
  for (const timeoutMs of [0.5, 86_400_000]) void app.close({ timeoutMs })
  await closeNow(app, clock)
})

test('whatever is wrong with one payload of a batch names its index', async () => {
  const { app, clock, queue } = await stage()
  const [good, other] = [{ orderId: 'a' }, { orderId: 'b' }]
  await app.send(queue, other, { idempotencyKey: 'k' })
  const atOne = (code: string) => (error: unknown) => {
    assert.ok(hasCode(error, code as 'MILLRACE_CLOSED'), String(error))
    assert.equal(error.fields.index, 1)
    assert.match(String(error), /payload 1 of the batch/)
    return true
  }
  await assert.rejects(
    app.sendBatch(queue, [good, good], {
      idempotencyKey: (_payload, i) => ['fine', 'not fine'][i],
    }),
    atOne('MILLRACE_INVALID_OPTIONS'),
  )
  await assert.rejects(
    app.sendBatch(queue, [good, good], { idempotencyKey: (_payload, i) => ['x', 'k'][i] }),
    atOne('MILLRACE_IDEMPOTENCY_CONFLICT'),
  )
  await assert.rejects(
    app.sendBatch(queue, [good, { orderId: 1n } as never]),
    atOne('MILLRACE_UNSERIALIZABLE_PAYLOAD'),
  )
  await assert.rejects(
    app.sendBatch(queue, [good, { orderId: 'x'.repeat(20_000_000) }]),
    atOne('MILLRACE_PAYLOAD_TOO_LARGE'),
  )
  await closeNow(app, clock)
})

test('a batch that can never fit is an error of its size, not of a full queue', async () => {
  const { app, clock, queue } = await stage({ queue: { capacity: { maxDepth: 5 } } })
  const six = Array.from({ length: 6 }, (_, i) => ({ orderId: String(i) }))
  await assert.rejects(
    app.sendBatch(queue, six),
    refusedWith('a batch of 6 never fits maxDepth 5 of the queue'),
  )
  await app.sendBatch(queue, six.slice(1))
  await closeNow(app, clock)
})
