import assert from 'node:assert/strict'
import { test } from 'node:test'
import { died, failedAttempt, idsOf, present, released } from '../../src/conformance/acts.ts'
import { type Scope, withScope } from '../../src/conformance/scope.ts'
import { priorities } from '../../src/layers/priorities.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { memoryHarness } from '../transports/memory-harness.ts'
import { levelledMemoryHarness } from './levelled-memory.ts'

function inScope(keep: (scope: Scope) => Promise<void>): () => Promise<void> {
  return () =>
    withScope({ harness: levelledMemoryHarness(3), depth: 'quick', random: () => 0.5 }, keep)
}

/** Dead letters of all levels, in turns. */
async function buried(scope: Scope, queue: string, count: number): Promise<readonly Envelope[]> {
  const { near, message, send, subscribe, one, settle, passes } = scope
  const subscription = await subscribe(near, queue)
  const dead: Envelope[] = []
  for (let n = 0; n < count; n++) {
    const sent = message({ priority: (n * 2) % 3 })
    await send(near, queue, sent)
    await settle(subscription, died(await one(subscription)))
    dead.unshift(sent)
    await passes(n % 4 === 0 ? 0 : 5)
  }
  return dead
}

test(
  'Dead letters of all levels are one list, page by page, the newest first, whatever is taken off meanwhile.',
  inScope(async (scope) => {
    const { queue, far } = scope
    const name = await queue()
    const dead = await buried(scope, name, 25)
    const shelf = present(far.shelf)
    const idsIn = async (limit: number): Promise<readonly string[]> => {
      const all: string[] = []
      let cursor: string | null | undefined
      do {
        const page = await shelf.list(name, { limit, ...(cursor ? { cursor } : {}) })
        assert.ok(page.items.length <= limit)
        all.push(...page.items.map(({ envelope }) => envelope.id))
        cursor = page.cursor
      } while (cursor !== null)
      return all
    }
    for (const limit of [1, 2, 7, 25, 100]) {
      const found = await idsIn(limit)
      assert.deepEqual([...found].sort(), dead.map(({ id }) => id).sort(), `pages of ${limit}`)
    }
    const { items } = await shelf.list(name, { limit: 100 })
    for (const [n, { deadAt, queue: of, envelope }] of items.entries()) {
      assert.ok(n === 0 || deadAt <= (items[n - 1]?.deadAt ?? 0), 'the newest first')
      assert.equal(of, name)
      assert.equal(envelope.priority, dead.find(({ id }) => id === envelope.id)?.priority)
    }
    await assert.rejects(shelf.list(name, { limit: 1, cursor: '["a","b","c","d"]' }), {
      code: 'MILLRACE_INVALID_OPTIONS',
    })
    const ids = dead.map(({ id }) => id)
    assert.deepEqual((await shelf.discard(name, ids.slice(0, 4), note)).length, 4)
    assert.equal(await shelf.count(name, {}), 21)
    assert.equal((await shelf.audit(name, 3)).length, 3)
    assert.ok((await shelf.audit(name, 10)).every((entry) => entry.queue === name))
  }),
)

const note = { actor: 'on-call', reason: 'again' }

test(
  'A redriven message goes back to its level.',
  inScope(async (scope) => {
    const { queue, near, far, subscribe, take } = scope
    const name = await queue()
    const dead = await buried(scope, name, 6)
    const ids = dead.map(({ id }) => id)
    assert.deepEqual([...(await present(near.shelf).redrive(name, ids, note))].sort(), ids.sort())
    const came = await take(await subscribe(far, name), 6)
    assert.deepEqual(
      came.map(({ envelope }) => envelope.priority),
      [2, 2, 1, 1, 0, 0],
    )
  }),
)

test(
  'A message is seen, cancelled and purged on whatever level it is, and the numbers are of all.',
  inScope(async ({ queue, near, far, message, send, passes }) => {
    const name = await queue()
    const sent = [0, 1, 2, 2].map((priority) => message({ priority, delayMs: priority * 1_000 }))
    await send(near, name, ...sent)
    await passes(1_500)
    const { gauge, get, cancel, purge } = present(far.browse)
    const seen = await present(get)(name, sent[3]?.id ?? '')
    assert.deepEqual([seen?.envelope.priority, seen?.state], [2, 'scheduled'])
    assert.deepEqual({ ...seen?.envelope.headers }, {})
    const { depth, scheduled, ageMs } = await gauge(name)
    assert.deepEqual([depth, scheduled, ageMs], [2, 2, 1_500])
    assert.equal(await present(cancel)(name, sent[3]?.id ?? ''), true)
    assert.equal(await present(cancel)(name, sent[3]?.id ?? ''), false)
    assert.equal(await present(purge)(name), 3)
  }),
)

test(
  'A delayed message counts from when it was due, and a retry from its failure: neither overtakes what waits longer.',
  inScope(async (scope) => {
    const { queue, near, message, send, subscribe, one, take, settle, passes } = scope
    const name = await queue({ ageingMs: 10_000 })
    const subscription = await subscribe(near, name)
    const [delayed, failed, urgent] = [0, 0, 1].map((priority) => message({ priority }))
    assert.ok(delayed && failed && urgent)
    await send(near, name, failed)
    const held = await one(subscription)
    await send(near, name, { ...delayed, delayMs: 60_000 })
    await passes(59_000)
    const attempt = failedAttempt({ at: scope.now() })
    await settle(subscription, released(held, { counted: true, delayMs: 500, attempt }))
    await passes(1_000)
    // Both are ready for a second at most: less than a level is worth.
    await send(near, name, urgent)
    const came = await take(subscription, 3)
    assert.equal(came[0]?.envelope.id, urgent.id)
    for (const { envelope } of came) assert.deepEqual({ ...envelope.headers }, {})
  }),
)

test(
  'A batch of several levels is not stored as a whole, and says so; each level alone is.',
  inScope(async ({ queue, near, message, never }) => {
    const name = await queue()
    const options = { signal: never, atomic: true }
    const torn = await near.send(name, [message(), message({ priority: 1 })], options)
    assert.ok(torn.every((sent) => !sent.ok && sent.fault.code === 'invalid'))
    const whole = await near.send(
      name,
      [1, 1].map((priority) => message({ priority })),
      options,
    )
    assert.ok(whole.every(({ ok }) => ok))
    const [above] = await near.send(name, [message({ priority: 3 })], { signal: never })
    assert.equal(above?.ok === false && above.fault.code, 'invalid')
  }),
)

/** Levels over a memory transport whose calls are seen. */
async function watched(keep: (world: Watched) => Promise<void>, ageingMs = 60_000): Promise<void> {
  const harness = memoryHarness()
  const inner = await harness.connect()
  const asked = new Map<string, number>()
  const broken = new Set<string>()
  const seen: Transport = {
    ...inner,
    traits: { ...inner.traits, priorities: 1 },
    subscribe: async (queue, options) => {
      const subscription = await inner.subscribe(queue, options)
      return {
        ...subscription,
        receive: async (receiving) => {
          asked.set(queue, (asked.get(queue) ?? 0) + 1)
          if (broken.has(queue)) throw new Error(`${queue} is away`)
          return subscription.receive(receiving)
        },
      }
    },
  }
  const transport = priorities(seen, { most: 3, clock: harness.time })
  const spec = { name: 'q', owner: 'team-a', maxDepth: undefined, priorities: 3, ageingMs }
  const { signal } = new AbortController()
  await transport.topology.ensure([spec], signal)
  const options = { group: 'g', leaseMs: 3_000, maxInFlight: 10 }
  const subscription = await transport.subscribe('q', options)
  const send = async (id: string, priority: number): Promise<void> => {
    const message = { id, priority, body: new Uint8Array(), headers: {} }
    const [sent] = await transport.send('q', [message], { signal })
    assert.ok(sent?.ok)
  }
  const receive = (max: number): Promise<readonly Delivery[]> =>
    subscription.receive({ max, waitMs: 0, signal })
  const { advance } = harness.time
  await keep({ transport, inner, subscription, asked, broken, send, receive, advance })
  await transport.close()
}

interface Watched {
  readonly transport: Transport
  readonly inner: Transport
  readonly subscription: Subscription
  readonly asked: Map<string, number>
  readonly broken: Set<string>
  send(id: string, priority: number): Promise<void>
  receive(max: number): Promise<readonly Delivery[]>
  advance(ms: number): Promise<void>
}

test('An idle queue asks each of its levels once in a wait, and a busy one does not ask the empty ones each time.', () =>
  watched(async ({ subscription, asked, send, receive, advance }) => {
    const { signal } = new AbortController()
    for (let turn = 0; turn < 5; turn++) {
      const waiting = subscription.receive({ max: 4, waitMs: 5_000, signal })
      await advance(5_000)
      assert.deepEqual(await waiting, [])
    }
    // The first one has to look before it waits.
    for (const [queue, count] of asked) assert.ok(count <= 6, `${queue} was asked ${count} times`)
    asked.clear()
    for (let n = 0; n < 40; n++) await send(`m${n}`, 0)
    for (let n = 0; n < 10; n++) assert.equal((await receive(4)).length, 4)
    assert.equal(asked.get('q'), 10)
    assert.ok((asked.get('q-p1') ?? 0) <= 1)
  }))

test('A receive that waits is woken by any level.', () =>
  watched(async ({ subscription, send }) => {
    const { signal } = new AbortController()
    for (const level of [0, 1, 2]) {
      const waiting = subscription.receive({ max: 4, waitMs: 60_000, signal })
      await send(`level-${level}`, level)
      assert.deepEqual(idsOf(await waiting), [`level-${level}`])
    }
  }))

test('What waits in hand keeps its lease while somebody receives, and goes back uncounted when nobody does.', () =>
  watched(async ({ inner, subscription, send, receive, advance }) => {
    for (const level of [0, 1, 2]) await send(`level-${level}`, level)
    for (let n = 0; n < 30; n++) await send(`urgent-${n}`, 2)
    const inFlight = async (): Promise<number | undefined> =>
      (await inner.browse?.gauge('q'))?.inFlight
    const hand: Delivery[] = []
    for (let n = 0; n < 10; n++) {
      hand.push(...(await receive(1)))
      assert.equal(await inFlight(), 1, 'the head of the lowest level is in hand')
      await advance(900)
      await subscription.renew?.(hand, 3_000)
    }
    // Three leases long.
    assert.ok(hand.every(({ envelope }) => envelope.priority === 2))
    await advance(200)
    assert.equal(await inFlight(), 0)
    const outcomes = await subscription.settle(
      hand.slice(-1).map((delivery) => ({ as: 'acked', delivery })),
    )
    assert.ok(outcomes[0]?.ok)
    const stored = await inner.browse?.get?.('q', 'level-0')
    assert.deepEqual([stored?.state, stored?.history.counted], ['ready', 0])
  }))

test('What waits in hand is bounded, whichever levels went last.', () =>
  watched(async ({ inner, send, receive, advance }) => {
    const sends = [
      [1, 0],
      [8, 1],
      [10, 0],
      [8, 2],
      [12, 1],
      [10, 0],
    ] as const
    for (const [at, [count, level]] of sends.entries()) {
      for (let n = 0; n < count; n++) await send(`m-${at}-${n}`, level)
      await advance(50)
    }
    const max = 8
    for (let turn = 1; turn <= 6; turn++) {
      const came = await receive(max)
      assert.equal(came.length, max)
      const gauges = ['q', 'q-p1', 'q-p2'].map((place) => inner.browse?.gauge(place))
      const held = (await Promise.all(gauges)).reduce((sum, one) => sum + (one?.inFlight ?? 0), 0)
      assert.ok(held - turn * max <= max + 3, `${held - turn * max} wait in turn ${turn}`)
    }
  }, 1))

test('What became ready behind the last of its level in hand is looked for before another level has its turn.', () =>
  watched(async ({ send, receive, advance }) => {
    for (const id of ['x', 'y', 'z']) await send(id, 1)
    await advance(50)
    for (const id of ['a', 'b']) await send(id, 0)
    assert.deepEqual(idsOf(await receive(3)), ['x', 'y', 'z'])
    await send('c', 0)
    await advance(150)
    await send('late', 1)
    assert.deepEqual(idsOf(await receive(4)), ['a', 'b', 'c', 'late'])
  }, 1))

test('What was cancelled while it waited in hand is not handed out.', () =>
  watched(async ({ transport, send, receive, advance }) => {
    await send('low', 0)
    await send('high', 2)
    assert.deepEqual(idsOf(await receive(1)), ['high'])
    assert.equal(await transport.browse?.cancel?.('q', 'low'), true)
    await advance(300)
    assert.deepEqual(await receive(1), [])
  }))

test('A level that is away holds up no other, and is not passed over in silence.', () =>
  watched(async ({ broken, send, receive }) => {
    broken.add('q-p1')
    await send('low', 0)
    await send('high', 2)
    assert.deepEqual(idsOf(await receive(1)), ['high'])
    await assert.rejects(receive(1), { message: 'q-p1 is away' })
    assert.deepEqual(idsOf(await receive(1)), ['low'])
    await assert.rejects(receive(1), { message: 'q-p1 is away' })
    await assert.rejects(receive(1), { message: 'q-p1 is away' })
    broken.clear()
    assert.deepEqual(await receive(1), [])
  }))

test('A suspect is handed out alone, and nothing else is in hand meanwhile.', () =>
  watched(async ({ transport, inner, send, receive, advance }) => {
    for (const level of [0, 1]) await send(`level-${level}`, level)
    const { signal } = new AbortController()
    const options = { group: 'g', leaseMs: 1_000, maxInFlight: 10 }
    const doomed = await inner.subscribe('q-p1', options)
    assert.equal((await doomed.receive({ max: 1, waitMs: 0, signal })).length, 1)
    await advance(1_500)
    const [suspect, ...others] = await receive(5)
    assert.deepEqual([suspect?.envelope.id, suspect?.alone], ['level-1', true])
    assert.deepEqual(others, [])
    assert.equal((await inner.browse?.gauge('q'))?.inFlight, 0)
    assert.equal((await transport.browse?.gauge('q'))?.inFlight, 1)
  }))
