import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineQueue, hasCode, InvalidPayloadError, type SendOptions } from 'millrace'
import { closeNow, orderSchema, stage } from './stage.ts'

const payload = { orderId: 'a' }

/** Refused in one line that has these words. */
function refusedWith(words: string): (error: unknown) => true {
  return (error) => {
    assert.ok(hasCode(error, 'MILLRACE_INVALID_OPTIONS'), String(error))
    const text = String(error)
    assert.ok(text.includes(words) && !text.includes('\n'), `${words} in ${text}`)
    return true
  }
}

test('keys and ids are 1 to 255 printable ASCII characters without spaces', async () => {
  const { app, clock, queue } = await stage()
  const wrong: readonly unknown[] = ['', 'a b', 'ä', 'a\u007f', 'x'.repeat(256), 5]
  for (const name of ['idempotencyKey', 'dedupeKey', 'orderingKey', 'id']) {
    for (const value of wrong) {
      await assert.rejects(
        app.send(queue, payload, { [name]: value }),
        refusedWith(`${name}: expected 1 to 255 printable ASCII characters without spaces, got `),
      )
    }
    for (const value of ['x'.repeat(255), '!~', name]) {
      const sent = await app.send(queue, payload, { [name]: value })
      assert.equal(sent.duplicate, false, `${name} ${value}`)
    }
  }
  await closeNow(app, clock)
})

test('a time is given once, and what is less than a millisecond is waited for', async () => {
  const { app, clock, queue } = await stage()
  const now = clock.now()
  const wrong: readonly (readonly [SendOptions, string])[] = [
    [{ delayMs: 0, readyAt: 0 }, 'delayMs and readyAt: give one of them'],
    [{ delayMs: -1 }, 'delayMs: expected a number from 0 to 315360000000, got -1'],
    [{ delayMs: 315_360_000_001 }, 'delayMs: expected a number from 0 to 315360000000, got'],
    [{ readyAt: -1 }, 'readyAt: expected a number from 0 to 8640000000000000, got -1'],
    [{ readyAt: new Date(Number.NaN) }, 'readyAt: expected a number from 0 to'],
    [{ readyAt: '2030-01-01' as never }, 'readyAt: expected a number from 0 to'],
    [{ priority: 1.5 }, 'priority: expected an integer from 0 to 9, got 1.5'],
    [{ priority: -1 }, 'priority: expected an integer from 0 to 9, got -1'],
  ]
  for (const [options, words] of wrong) {
    await assert.rejects(app.send(queue, payload, options), refusedWith(words))
  }
  assert.equal((await app.admin.stats(queue)).scheduled, 0)
  for (const options of [
    { delayMs: 9.5 },
    { readyAt: now + 9.5 },
    { readyAt: new Date(now + 10) },
  ]) {
    const { id } = await app.send(queue, payload, options)
    const waiting = await app.admin.messages.get(queue, id)
    assert.deepEqual([waiting?.state, waiting?.readyAt], ['scheduled', now + 10])
  }
  await closeNow(app, clock)
})

test('headers are at most 64 and 8,192 bytes, their names included', async () => {
  const { app, clock, queue } = await stage()
  const many = (count: number): Record<string, string> =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`h-${i}`, '']))
  const wrong: readonly (readonly [Record<string, string>, string])[] = [
    [many(65), 'headers: expected at most 64, got 65'],
    [{ h: 'x'.repeat(8_192) }, 'headers: expected at most 8192 bytes in all, got 8193'],
    [{ h: 'ü'.repeat(4_096) }, 'headers: expected at most 8192 bytes in all, got 8193'],
    [{ ['n'.repeat(129)]: '' }, 'expected a name of 1 to 128 HTTP token characters'],
    [{ '': '' }, 'expected a name of 1 to 128 HTTP token characters'],
    [{ 'Millrace-Own': '' }, 'names that start with "millrace-" are reserved'],
    [{ h: '\0' }, 'expected text without NUL and lone surrogates'],
    [{ h: 'x\ud800' }, 'expected text without NUL and lone surrogates'],
  ]
  for (const [headers, words] of wrong) {
    await assert.rejects(app.send(queue, payload, { headers }), refusedWith(words))
  }
  const right = [many(64), { h: 'x'.repeat(8_191) }, { ['n'.repeat(128)]: 'ü' }]
  for (const headers of right) {
    const { id } = await app.send(queue, payload, { headers })
    assert.deepEqual((await app.admin.messages.get(queue, id))?.headers, headers)
  }
  await closeNow(app, clock)
})

test('a queue that refuses delays in order refuses a moment, too', async () => {
  const strict = defineQueue({
    name: 'strict',
    owner: 'team',
    payload: orderSchema,
    orderingKey: ({ orderId }) => orderId,
    onDead: 'continue',
    delayed: 'refuse',
  })
  const { app, clock } = await stage({ beside: [strict] })
  const readyAt = clock.now() + 1_000
  await assert.rejects(
    app.send(strict, payload, { readyAt }),
    refusedWith('readyAt: the queue keeps its keys in order'),
  )
  await assert.rejects(
    app.send(strict, payload, { delayMs: 1 }),
    refusedWith('delayMs: the queue keeps its keys in order'),
  )
  await app.send(strict, payload, { delayMs: 0 })
  await closeNow(app, clock)
})

test('the order of the fields makes no other payload', async () => {
  const { app, clock, queue } = await stage()
  const [one, other] = [
    { orderId: 'a', note: 1 },
    { note: 1, orderId: 'a' },
  ]
  const first = await app.send(queue, one, { idempotencyKey: 'k' })
  const again = await app.send(queue, other, { idempotencyKey: 'k' })
  assert.deepEqual(again, { id: first.id, duplicate: true })
  await closeNow(app, clock)
})

test('what a key function threw is the cause, and no half of a character is left of a long message', async () => {
  for (const before of ['', 'x']) {
    const thrown = new Error(`${before}${'😀'.repeat(400)}`)
    const { app, clock, queue } = await stage({
      queue: {
        idempotencyKey: () => {
          throw thrown
        },
      },
    })
    await assert.rejects(app.send(queue, payload), (error: unknown) => {
      assert.ok(error instanceof InvalidPayloadError)
      const text = error.issues[0]?.message ?? ''
      assert.deepEqual([text.length, text.isWellFormed(), error.cause], [500, true, thrown])
      return true
    })
    await closeNow(app, clock)
  }
})

test('a payload of a batch that has no ordering key or no fair key is named by its index', async () => {
  const keyOf = ({ orderId }: { readonly orderId: string }): string => orderId
  const shared = { owner: 'team', payload: orderSchema }
  const ordered = defineQueue({
    ...shared,
    name: 'ordered',
    orderingKey: keyOf,
    onDead: 'continue',
  })
  const fair = defineQueue({ ...shared, name: 'fair', fairBy: keyOf })
  const { app, clock } = await stage({ beside: [ordered, fair] })
  for (const queue of [ordered, fair]) {
    await assert.rejects(
      app.sendBatch(queue, [payload, { orderId: '' }]),
      (error: unknown) => error instanceof InvalidPayloadError && error.index === 1,
    )
    assert.equal((await app.admin.stats(queue)).depth, 0)
  }
  await closeNow(app, clock)
})

test('a key function that is asynchronous is refused, and its own failure ends no process', async () => {
  const { app, clock, queue } = await stage({
    queue: { idempotencyKey: (async () => Promise.reject(new Error('late'))) as never },
  })
  const unhandled: unknown[] = []
  const note = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', note)
  await assert.rejects(
    app.send(queue, payload),
    (error: unknown) => error instanceof InvalidPayloadError,
  )
  // Node tells of it once the microtasks are done.
  await new Promise(setImmediate)
  process.off('unhandledRejection', note)
  assert.deepEqual(unhandled, [])
  await closeNow(app, clock)
})
