import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasCode, PermanentError } from 'millrace'
import { type BlobStore, memoryBlobs } from 'millrace/blobs'
import type { InboxConnector } from 'millrace/inbox'
import { memory } from 'millrace/memory'
import { closeNow, stage } from './stage.ts'

const DAY_MS = 86_400_000
const { signal } = new AbortController()
const order = { orderId: 'x'.repeat(100_000) }
const small = { orderId: 'small' }

/** A blob store that counts what is asked of it, and can be away. */
function watchedBlobs() {
  const kept = memoryBlobs()
  const seen = { away: false, gets: 0, puts: 0 }
  const reached = (): void => {
    if (seen.away) throw new Error('the disk is gone')
  }
  const blobs: BlobStore = {
    ...kept,
    put: async (...given) => {
      seen.puts += 1
      reached()
      return kept.put(...given)
    },
    get: async (...given) => {
      seen.gets += 1
      reached()
      return kept.get(...given)
    },
    list: async (...given) => {
      reached()
      return kept.list(...given)
    },
  }
  const names = (): Promise<readonly string[]> => kept.list({ before: 'z', max: 1_000 }, signal)
  return { blobs, seen, names, empty: async () => kept.remove(await names(), signal) }
}

type Stage = Awaited<ReturnType<typeof stage>>

/** How the queue looks to a worker that knows of no claim check. */
async function bodyOf({ store, clock, lines: _ }: Stage, id: string): Promise<string> {
  const logger = { debug() {}, info() {}, warn() {}, error() {} }
  const context = { signal, clock, random: Math.random, logger, migrate: 'auto' } as const
  const transport = await store.connect(context)
  const found = await transport.browse?.get?.('orders', id)
  const letter = await transport.shelf?.get('orders', id)
  return new TextDecoder().decode((found ?? letter)?.envelope.body)
}

test('A payload that the blob store does not take is refused with its limit, not with advice that was followed', async () => {
  const text = (length: number) => ({ orderId: 'x'.repeat(length) })
  const refusalWith = async (maxBytes: number | undefined, length: number): Promise<string> => {
    const claimCheck =
      maxBytes === undefined ? {} : { claimCheck: { blobs: memoryBlobs({ maxBytes }) } }
    const { app, clock, queue } = await stage({ app: claimCheck })
    const refusal = await app.send(queue, text(length)).catch(String)
    await closeNow(app, clock)
    return String(refusal)
  }
  assert.match(
    await refusalWith(20_000_000, 21_000_000),
    /21000014 bytes, the blob store of the claimCheck takes 20000000; raise the maxBytes/,
  )
  assert.match(
    await refusalWith(1_000_000, 21_000_000),
    /21000014 bytes, the transport takes 16777216; raise the maxBytes of the blobs of your claimCheck/,
  )
  assert.match(
    await refusalWith(undefined, 21_000_000),
    /21000014 bytes, the transport takes 16777216; give createMillrace a claimCheck/,
  )
})

test('A large payload goes to the blobs, a small one does not, and both arrive', async () => {
  const { blobs, seen, names } = watchedBlobs()
  const on = await stage({ app: { claimCheck: { blobs } } })
  const got: number[] = []
  on.app.work(on.queue, ({ payload, headers }) => {
    got.push(payload.orderId.length)
    assert.deepEqual(headers, { from: 'me' })
  })
  const { id } = await on.app.send(on.queue, order, { headers: { from: 'me' } })
  await on.app.send(on.queue, small, { headers: { from: 'me' } })
  assert.equal(seen.puts, 1)
  assert.match(await bodyOf(on, id), /^\{"millrace-blob":"[\w.-]+","bytes":\d+\}$/)
  const shown = await on.app.admin.messages.get(on.queue, id)
  assert.deepEqual(shown?.payload, order)
  await on.app.start()
  await on.clock.advance(1_000)
  assert.deepEqual(got.sort(), [100_000, 5])
  assert.equal((await names()).length, 1, 'an ack leaves the blob to the sweep')
  await closeNow(on.app, on.clock)
})

test('A dead letter shows its payload, and a redrive moves the reference', async () => {
  const { blobs, seen } = watchedBlobs()
  const told: unknown[] = []
  const on = await stage({
    app: { claimCheck: { blobs }, onDeadLetter: (letter) => told.push(letter.payload) },
  })
  let fails = true
  const got: unknown[] = []
  on.app.work(on.queue, ({ payload }) => {
    if (fails) throw new PermanentError('no')
    got.push(payload)
  })
  const { id } = await on.app.send(on.queue, order)
  await on.app.start()
  await on.clock.advance(1_000)
  assert.deepEqual(told, [order])
  assert.match(await bodyOf(on, id), /^\{"millrace-blob":/)
  const { items } = await on.app.admin.deadLetters.list(on.queue)
  assert.deepEqual(items[0]?.payload, order)
  assert.deepEqual(items[0]?.headers, {})
  fails = false
  const { puts, gets } = seen
  const { deadLetters } = on.app.admin
  assert.equal((await deadLetters.redrive(on.queue, { filter: {}, dryRun: true })).matched, 1)
  assert.equal(seen.gets, gets, 'a redrive by filter reads no bodies')
  const { moved } = await on.app.admin.deadLetters.redrive(on.queue, { ids: [id] })
  await on.clock.advance(1_000)
  assert.deepEqual([moved, got, seen.puts - puts], [1, [order], 0])
  await closeNow(on.app, on.clock)
})

test('A message whose blob is gone is dead at once, and says so', async () => {
  const { blobs, empty } = watchedBlobs()
  const on = await stage({ app: { claimCheck: { blobs } } })
  on.app.work(on.queue, () => assert.fail('it has no body'))
  await on.app.send(on.queue, order)
  await empty()
  await on.app.start()
  await on.clock.advance(1_000)
  const { items } = await on.app.admin.deadLetters.list(on.queue)
  assert.equal(items[0]?.errorClass, 'permanent')
  assert.match(items[0]?.reason ?? '', /the body of message .* is gone: there is no blob/)
  assert.equal(items[0]?.attempts.length, 1)
  await closeNow(on.app, on.clock)
})

test('A worker without the claim check does not take a reference for a payload', async () => {
  const { blobs } = watchedBlobs()
  const on = await stage()
  const sender = await on.open({ claimCheck: { blobs } })
  on.app.work(on.queue, () => assert.fail('it has no body'))
  await sender.send(on.queue, order)
  await on.app.start()
  await on.clock.advance(1_000)
  const { items } = await on.app.admin.deadLetters.list(on.queue)
  assert.match(items[0]?.reason ?? '', /give createMillrace the claimCheck of its sender/)
  await closeNow(on.app, on.clock)
  await closeNow(sender, on.clock)
})

test('Blobs that are away at send: nothing is sent, and the error says to try again', async () => {
  const { blobs, seen, names } = watchedBlobs()
  const on = await stage({ app: { claimCheck: { blobs } } })
  seen.away = true
  await assert.rejects(on.app.send(on.queue, order), (error) => {
    assert.ok(hasCode(error, 'MILLRACE_UNAVAILABLE'))
    assert.match(String(error), /nothing was sent: .* memory blobs \(the disk is gone\); try again/)
    return true
  })
  await on.app.send(on.queue, small)
  await assert.rejects(on.app.sendBatch(on.queue, [small, order]))
  assert.equal((await on.app.admin.stats(on.queue)).depth, 1, 'a batch is sent whole or not at all')
  assert.equal((await names()).length, 0)
  await closeNow(on.app, on.clock)
})

test('Blobs that are away at receive: given back without blame, and handled when they are there', async () => {
  const { blobs, seen } = watchedBlobs()
  const on = await stage({ app: { claimCheck: { blobs } }, queue: { retry: { attempts: 1 } } })
  const attempts: number[] = []
  on.app.work(on.queue, ({ attempt }) => void attempts.push(attempt))
  const { id } = await on.app.send(on.queue, order)
  seen.away = true
  await on.app.start()
  await on.clock.advance(20_000)
  assert.ok(seen.gets > 3)
  const { reasons } = await on.app.health()
  assert.match(reasons.join(), /could not be fetched from memory blobs \(the disk is gone\)/)
  assert.equal((await on.app.admin.messages.get(on.queue, id))?.attempts.length, 0)
  seen.away = false
  await on.clock.advance(5_000)
  assert.deepEqual(attempts, [1])
  assert.deepEqual((await on.app.health()).reasons, [])
  await closeNow(on.app, on.clock)
})

test('Blobs that give what is no bytes: the list shows the reference, and health names the store and the message', async () => {
  const { blobs } = watchedBlobs()
  const spoilt = { isOn: false, given: undefined as unknown }
  const wrong: BlobStore = {
    ...blobs,
    name: 'mine',
    get: async (...given) =>
      (spoilt.isOn ? spoilt.given : await blobs.get(...given)) as Uint8Array | undefined,
  }
  const on = await stage({ app: { claimCheck: { blobs: wrong } } })
  let fail = true
  on.app.work(on.queue, () => {
    if (fail) throw new PermanentError('no')
  })
  await on.app.start()
  const { id } = await on.app.send(on.queue, order)
  await on.app.send(on.queue, small)
  await on.clock.advance(100)
  for (const given of ['a text', 7, {}, null, [1]]) {
    Object.assign(spoilt, { isOn: true, given })
    const { items } = await on.app.admin.deadLetters.list(on.queue)
    assert.deepEqual(items.length, 2)
    assert.match(JSON.stringify(items.find((one) => one.id === id)?.payload), /millrace-blob/)
    assert.equal((await on.app.admin.deadLetters.show(on.queue, id))?.id, id)
  }
  spoilt.given = 'a text'
  fail = false
  const { id: next } = await on.app.send(on.queue, order)
  await on.clock.advance(100)
  const [reason] = (await on.app.health()).reasons
  assert.match(
    reason ?? '',
    new RegExp(`message ${next} could not be fetched from mine .*its get gave "a text"`),
  )
  spoilt.isOn = false
  await on.clock.advance(5_000)
  assert.equal(on.app.counters()['orders']?.acked, 1)
  await closeNow(on.app, on.clock)
})

test('The inbox is asked first: of a known key the body is not fetched', async () => {
  const { blobs, seen } = watchedBlobs()
  const inbox: InboxConnector<unknown> = {
    name: 'knowing',
    connect: async () => ({
      name: 'knowing',
      databaseId: 'another',
      ttlMs: 365 * DAY_MS,
      effects: 'async',
      seen: async (keys) => keys.map(({ key }) => key === 'known'),
      run: () => assert.fail('no effect here'),
      record: async () => undefined,
      prune: async () => 0,
      close: async () => undefined,
    }),
  }
  const on = await stage({ app: { claimCheck: { blobs }, inbox } })
  const got: string[] = []
  on.app.work(on.queue, ({ idempotencyKey }) => void got.push(idempotencyKey))
  await on.app.send(on.queue, order, { idempotencyKey: 'known' })
  await on.app.send(on.queue, order, { idempotencyKey: 'new' })
  await on.app.start()
  await on.clock.advance(1_000)
  assert.deepEqual([got, seen.gets], [['new'], 1])
  assert.equal(on.app.counters().orders?.duplicates, 1)
  await closeNow(on.app, on.clock)
})

test('A blob store that never answers holds nobody for ever', async () => {
  const { blobs } = watchedBlobs()
  const hanging = { ...blobs, get: () => new Promise<undefined>(() => undefined) }
  const on = await stage({ app: { claimCheck: { blobs: hanging } } })
  const got: unknown[] = []
  on.app.work(on.queue, ({ payload }) => void got.push(payload))
  await on.app.send(on.queue, order)
  await on.app.start()
  await on.clock.advance(35_000)
  await on.app.send(on.queue, small)
  assert.match((await on.app.health()).reasons.join(), /no answer within 30000 ms/)
  await on.clock.advance(35_000)
  assert.deepEqual(got, [small])
  await closeNow(on.app, on.clock)
})

/** Gets of the blob whose message has this id hang until it is told otherwise. */
function slowOne(blobs: BlobStore, id: string) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const slow: BlobStore = {
    ...blobs,
    get: async (name, ends) => {
      if (name.includes(id)) await promise
      return blobs.get(name, ends)
    },
  }
  return { slow, answer: resolve }
}

test('A slow body holds up itself alone, takes a slot, and runs when it is there', async () => {
  const { slow, answer } = slowOne(watchedBlobs().blobs, 'slow-one')
  const on = await stage({ app: { claimCheck: { blobs: slow } } })
  const got: string[] = []
  on.app.work(on.queue, ({ id }) => void got.push(id), { concurrency: 2 })
  await on.app.send(on.queue, order, { id: 'slow-one' })
  for (const id of ['b', 'c']) await on.app.send(on.queue, order, { id })
  await on.app.start()
  await on.clock.advance(1_000)
  for (const id of ['d', 'e']) await on.app.send(on.queue, order, { id })
  await on.clock.advance(1_000)
  assert.deepEqual(got, ['b', 'c', 'd', 'e'])
  assert.equal((await on.app.admin.stats(on.queue)).inFlight, 1)
  answer()
  await on.clock.advance(1_000)
  assert.deepEqual(got, ['b', 'c', 'd', 'e', 'slow-one'])
  assert.equal((await on.app.admin.stats(on.queue)).depth, 0)
  await closeNow(on.app, on.clock)
})

test('Slow bodies take no more than the slots, and none is asked for twice', async () => {
  const { blobs } = watchedBlobs()
  const asked: string[] = []
  const hanging: BlobStore = {
    ...blobs,
    get: (name) => {
      asked.push(name)
      return new Promise(() => undefined)
    },
  }
  const on = await stage({ app: { claimCheck: { blobs: hanging } } })
  on.app.work(on.queue, () => assert.fail('it has no body'), { concurrency: 3 })
  for (let n = 0; n < 10; n++) await on.app.send(on.queue, order)
  await on.app.start()
  await on.clock.advance(20_000)
  assert.deepEqual([asked.length, new Set(asked).size], [3, 3])
  await closeNow(on.app, on.clock)
})

test('A close does not wait for a slow body: its message is given back, uncounted, and runs elsewhere', async () => {
  const { blobs } = watchedBlobs()
  const { slow, answer } = slowOne(blobs, 'slow-one')
  const on = await stage({ app: { claimCheck: { blobs: slow } } })
  on.app.work(on.queue, () => assert.fail('this worker has ended'))
  await on.app.send(on.queue, order, { id: 'slow-one' })
  await on.app.start()
  await on.clock.advance(1_000)
  const closed = on.app.close({ timeoutMs: 10_000 })
  await on.clock.advance(300)
  await closed
  answer()
  const other = await on.open({ claimCheck: { blobs } })
  const attempts: number[] = []
  other.work(on.queue, ({ attempt }) => void attempts.push(attempt))
  await other.start()
  await on.clock.advance(1_000)
  assert.deepEqual(attempts, [1])
  await closeNow(other, on.clock)
})

test('Blobs that are away are told of once in a while, not for each message', async () => {
  const { blobs, seen } = watchedBlobs()
  const on = await stage({ app: { claimCheck: { blobs } } })
  on.app.work(on.queue, () => assert.fail('it has no body'), { concurrency: 50 })
  for (let n = 0; n < 150; n++) await on.app.send(on.queue, order)
  seen.away = true
  await on.app.start()
  await on.clock.advance(10_500)
  const told = on.lines.filter(({ message }) => message.includes('could not be fetched'))
  assert.ok(seen.gets >= 200 && seen.gets <= 550, `asked ${seen.gets} times`)
  assert.ok(told.length > 1 && told.length <= 11, `told ${told.length} times`)
  await closeNow(on.app, on.clock)
})

test('Blobs that are away at start: the app goes on without them, and says so until a sweep gets through', async () => {
  const { blobs, seen } = watchedBlobs()
  seen.away = true
  const on = await stage({ app: { claimCheck: { blobs } } })
  assert.match(
    on.lines.map(({ level, message }) => `${level}: ${message}`).join(),
    /warn: memory blobs cannot be opened \(.*the disk is gone\).*; going on without it/,
  )
  const got: unknown[] = []
  on.app.work(on.queue, ({ payload }) => void got.push(payload))
  await on.app.start()
  await on.app.send(on.queue, small)
  await on.clock.advance(1_000)
  assert.deepEqual(got, [small])
  const problem = 'the blob store memory blobs fails (the disk is gone)'
  assert.deepEqual((await on.app.health()).reasons, [problem])
  assert.deepEqual(on.app.admin.backend().problems, [problem])
  seen.away = false
  await on.clock.advance(120_000)
  assert.deepEqual((await on.app.health()).reasons, [])
  seen.away = true
  await on.clock.advance(120_000)
  assert.deepEqual((await on.app.health()).reasons, [problem])
  await closeNow(on.app, on.clock)
})

test('Blobs that will not let us in are refused when the app is made', async () => {
  const denied = Object.assign(new Error('Access Denied'), {
    name: 'AccessDenied',
    $metadata: { httpStatusCode: 403 },
  })
  const blobs = { ...memoryBlobs(), list: () => Promise.reject(denied) }
  await assert.rejects(stage({ app: { claimCheck: { blobs } } }), (error) => {
    assert.ok(hasCode(error, 'MILLRACE_UNAVAILABLE'))
    assert.match(String(error), /memory blobs cannot be opened \(AccessDenied: Access Denied\)/)
    return true
  })
})

test('A blob store that hangs stops neither the start nor the sweeps for ever', async () => {
  const { blobs } = watchedBlobs()
  const listed: AbortSignal[] = []
  const hanging: BlobStore = {
    ...blobs,
    list: (_, ends) => {
      listed.push(ends)
      return new Promise(() => undefined)
    },
  }
  const on = await stage()
  const opening = on.open({ claimCheck: { blobs: hanging } })
  await on.clock.advance(5_000)
  const app = await opening
  await app.start()
  await on.clock.advance(400_000)
  assert.ok(listed.length > 2, 'swept again')
  assert.ok(listed.slice(0, 2).every(({ aborted }) => aborted))
  assert.match((await app.health()).reasons.join(), /no answer within 60000 ms/)
  await closeNow(app, on.clock)
  await closeNow(on.app, on.clock)
})

test('The view of the backend names the claim check, with the limit of the transport', async () => {
  const { blobs } = watchedBlobs()
  const on = await stage({ app: { claimCheck: { blobs, aboveBytes: 1e12, keepMs: 40 * DAY_MS } } })
  assert.deepEqual(on.app.admin.backend().claimCheck, {
    blobs: 'memory blobs',
    aboveBytes: 16_777_216,
    maxBytes: 67_108_864,
    keepMs: 40 * DAY_MS,
  })
  const without = await stage()
  assert.equal(without.app.admin.backend().claimCheck, undefined)
  await closeNow(without.app, without.clock)
  await closeNow(on.app, on.clock)
})

test('What is refused leaves no blob, and what was a duplicate leaves it to the sweep', async () => {
  const { blobs, names } = watchedBlobs()
  const on = await stage({ app: { claimCheck: { blobs } }, queue: { capacity: { maxDepth: 1 } } })
  await on.app.send(on.queue, order, { id: 'one' })
  await assert.rejects(on.app.send(on.queue, order, { id: 'two' }))
  assert.equal((await names()).length, 1)
  const { duplicate } = await on.app.send(on.queue, order, { id: 'one' })
  assert.deepEqual([duplicate, (await names()).length], [true, 2])
  await closeNow(on.app, on.clock)
})

test('Blobs are swept when their time is over, which begins when the message is ready', async () => {
  const { blobs, names } = watchedBlobs()
  const on = await stage({ app: { claimCheck: { blobs, keepMs: 20 * DAY_MS } } })
  await on.app.send(on.queue, order, { id: 'now' })
  await on.app.send(on.queue, order, { id: 'later', delayMs: 5 * DAY_MS })
  on.app.work(on.queue, () => undefined)
  await on.app.start()
  await on.clock.advance(1_000)
  await closeNow(on.app, on.clock)
  const idle = await on.open({ claimCheck: { blobs, keepMs: 20 * DAY_MS } })
  const sweepAfter = async (ms: number): Promise<string> => {
    await on.clock.advance(ms)
    return (await names()).map((name) => name.split('.')[1]).join()
  }
  await idle.start()
  assert.equal(await sweepAfter(19 * DAY_MS), 'now,later')
  assert.equal(await sweepAfter(DAY_MS + 120_000), 'later')
  assert.equal(await sweepAfter(5 * DAY_MS), '')
  await closeNow(idle, on.clock)
})

test('Wrong options are refused, all at once', async () => {
  const { blobs } = watchedBlobs()
  const refused = (claimCheck: object, ...expected: readonly RegExp[]): Promise<void> =>
    assert.rejects(stage({ app: { claimCheck: claimCheck as never } }), (error) => {
      assert.ok(hasCode(error, 'MILLRACE_INVALID_OPTIONS'))
      for (const one of expected) assert.match(String(error), one)
      return true
    })
  await refused({ blobs, keepMs: DAY_MS }, /claimCheck.keepMs: the queues need \d+ ms/)
  await refused({ blobs: {}, aboveBytes: -1 }, /claimCheck.blobs/, /claimCheck.aboveBytes/)
  await refused({ blobs, above: 1 }, /above/)
  await refused(memory, /claimCheck/)
})
