import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headers } from '@nats-io/transport-node'
import { type NatsSettings, nats } from 'millrace/nats'
import { type Clock, systemClock } from '../../src/model/clock.ts'
import { settled } from '../../src/model/delivery.ts'
import type { AttemptRecord } from '../../src/model/history.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { lost } from '../../src/transport/outcomes.ts'
import { backendUrl } from '../backends.ts'
import {
  ack,
  ensureQ,
  envelope,
  type NatsBench,
  one,
  openNats,
  released,
  signal,
  take,
} from './nats-bench.ts'
import { until } from './until.ts'

const servers = backendUrl('nats')

function within(
  title: string,
  body: (bench: NatsBench) => Promise<void>,
  settings?: NatsSettings,
): void {
  if (servers === undefined) return
  test(`nats: ${title}`, async (t) => {
    const bench = await openNats(servers, settings)
    t.after(() => bench.dispose())
    await body(bench)
  })
}

within(
  'headers that are orders to the server, or that NATS cannot carry, come back as they were',
  async (bench) => {
    const sent = {
      'Nats-Rollup': 'all',
      'Nats-TTL': '1s',
      'nats-msg-id': 'x',
      'Nats-Expected-Last-Sequence': '99',
      'millrace-history': '{"counted":7}',
      'ce-id': 'not mine',
      'with space': ' around ',
      'with:colon': 'a\r\nb: c',
      ключ: 'знач',
      __proto__: 'x',
      plain: 'ä',
    }
    const [first] = await bench.transport.send(
      'q',
      [envelope('a'), envelope('b', { headers: { ...sent } })],
      { signal },
    )
    assert.equal(first?.ok, true)
    const deliveries = await take(await bench.subscribe(), 2)
    assert.deepEqual(
      deliveries.map((each) => each.envelope.id),
      ['a', 'b'],
    )
    assert.deepEqual({ ...deliveries[1]?.envelope.headers }, { ...sent })
    assert.equal(deliveries[1]?.history.counted, 0)
  },
)

within('other programs can read what is on the wire', async (bench) => {
  const sent = envelope('a', {
    idempotencyKey: 'order-1',
    orderingKey: 'customer-2',
    headers: { traceparent: '00-x' },
  })
  await bench.transport.send('q', [sent], { signal })
  const stored = await bench.manager.streams.getMessage(`${bench.prefix}-queue-q`, { seq: 1 })
  assert.equal(stored?.subject, `${bench.prefix}.queue.q`)
  assert.equal(stored?.string(), '{"n":"a"}')
  assert.deepEqual(
    Object.fromEntries([...(stored?.header ?? [])].map(([name, [value]]) => [name, value])),
    {
      traceparent: '00-x',
      'ce-specversion': '1.0',
      'ce-id': 'a',
      'ce-source': '/millrace',
      'ce-type': 'q',
      'ce-idempotencykey': 'order-1',
      'ce-partitionkey': 'customer-2',
      'Nats-Msg-Id': 'a',
    },
  )
})

within(
  'a bare message of another program is known by the making of its stream and its sequence',
  async (bench) => {
    const bytes = Uint8Array.from([0, 255, 128])
    await bench.raw.request(`${bench.prefix}.queue.q`, bytes)
    const { created } = await bench.manager.streams.info(`${bench.prefix}-queue-q`)
    const subscription = await bench.subscribe()
    const first = await one(subscription)
    assert.equal(first.envelope.id, `${Date.parse(created)}-1`)
    assert.deepEqual([...first.envelope.body], [0, 255, 128])
    await subscription.settle([{ as: 'released', delivery: first, delayMs: 0, counted: true }])
    const again = await one(subscription)
    assert.equal(again.envelope.id, first.envelope.id)
    assert.equal(again.history.counted, 1)
  },
)

within('a CloudEvent of another program keeps its id, its source and its type', async (bench) => {
  const fields = headers()
  for (const [name, value] of [
    ['ce-id', 'e-1'],
    ['ce-source', '/shop'],
    ['ce-type', 'sold'],
    ['x', '1'],
  ] as const) {
    fields.set(name, value)
  }
  await bench.raw.request(`${bench.prefix}.queue.q`, '{}', { headers: fields, timeout: 2_000 })
  const { envelope: got } = await one(await bench.subscribe())
  assert.equal(got.id, 'e-1')
  assert.deepEqual({ ...got.headers }, { 'ce-source': '/shop', 'ce-type': 'sold', x: '1' })
})

within('a copy of a message that is known by its id is stored', async ({ transport }) => {
  const sent = [
    envelope('a'),
    envelope('a'),
    envelope('a', { copy: 1 }),
    envelope('a', { copy: 1 }),
  ]
  const outcomes = await transport.send('q', sent, { signal })
  assert.deepEqual(
    outcomes.map((each) => each.ok && each.duplicate),
    [false, true, false, true],
  )
})

within(
  'what the server waits for an ack of is renewed, so that a lease may be longer than the ack wait',
  async (bench) => {
    const { config } = await bench.manager.consumers.info(`${bench.prefix}-queue-q`, bench.prefix)
    assert.equal(config.ack_wait, 1_000_000_000)
    assert.equal(config.max_deliver, -1)
    await bench.transport.send('q', [envelope('a')], { signal })
    const holder = await bench.subscribe()
    const delivery = await one(holder)
    const other = await bench.subscribe(await bench.another())
    assert.deepEqual(await other.receive({ max: 1, waitMs: 3_500, signal }), [])
    assert.deepEqual(await holder.settle([ack(delivery)]), [{ ok: true }])
  },
)

within(
  'a message that succeeds at once leaves nothing beside it, and one that failed leaves nothing when it ends',
  async (bench) => {
    const attempts = async (): Promise<number> => {
      const { state } = await bench.manager.streams.info(`${bench.prefix}-shelf-q`, {
        subjects_filter: `${bench.prefix}.attempts.q.*`,
      })
      return Object.keys(state.subjects ?? {}).length
    }
    await bench.transport.send('q', [envelope('a'), envelope('b')], { signal })
    const subscription = await bench.subscribe()
    const [a, b] = await take(subscription, 2)
    assert.ok(a && b)
    await subscription.settle([ack(a), { as: 'released', delivery: b, delayMs: 0, counted: true }])
    assert.equal(await attempts(), 1)
    await subscription.settle([ack(await one(subscription))])
    assert.equal(await attempts(), 0)
  },
)

within(
  'attempts as long as they may be are kept whole while a message waits, and cut to fit when it is dead',
  async (bench) => {
    const attempt: AttemptRecord = {
      at: 1,
      errorClass: 'transient',
      code: 'E',
      message: 'm'.repeat(3_000),
      stack: 's'.repeat(5_000),
    }
    await bench.transport.send('q', [envelope('a')], { signal })
    const subscription = await bench.subscribe()
    for (let round = 0; round < 42; round++) {
      const delivery = await one(subscription)
      assert.equal(delivery.history.records.length, Math.min(round, 40))
      assert.ok(delivery.history.records.every((record) => record.stack === attempt.stack))
      await subscription.settle([{ as: 'released', delivery, delayMs: 0, counted: true, attempt }])
    }
    const delivery = await one(subscription)
    const [died] = await subscription.settle([
      { as: 'dead', delivery, reason: 'r'.repeat(100_000), errorClass: 'permanent' },
    ])
    assert.deepEqual(died, { ok: true })
    const letter = await bench.transport.shelf?.get('q', 'a')
    assert.equal(letter?.history.counted, 42)
    assert.ok((letter?.history.records.length ?? 0) >= 5)
    assert.equal(letter?.reason.length, 4_096)
    const note = { actor: 'a', reason: 'b' }
    assert.deepEqual(await bench.transport.shelf?.redrive('q', ['a'], note), ['a'])
    assert.equal((await one(subscription)).history.redrives, 1)
  },
)

within('a page of the shelf reaches over what has left it', async (bench) => {
  const ids = Array.from({ length: 60 }, (_, at) => `m${at}`)
  await bench.transport.send(
    'q',
    ids.map((id) => envelope(id)),
    { signal },
  )
  const subscription = await bench.subscribe()
  for (const delivery of await take(subscription, 60)) {
    await subscription.settle([{ as: 'dead', delivery, reason: 'no', errorClass: 'permanent' }])
  }
  const { shelf } = bench.transport
  await shelf?.discard('q', ids.slice(2, 58), { actor: 'a', reason: 'b' })
  const first = await shelf?.list('q', { limit: 3 })
  assert.deepEqual(
    first?.items.map((letter) => letter.envelope.id),
    ['m59', 'm58', 'm1'],
  )
  const rest = await shelf?.list('q', { limit: 3, cursor: first?.cursor ?? '' })
  assert.deepEqual(
    rest?.items.map((letter) => letter.envelope.id),
    ['m0'],
  )
  assert.equal(rest?.cursor, null)
  await assert.rejects(async () => shelf?.list('q', { limit: 3, cursor: 'x' }), /cursor/)
  assert.equal((await shelf?.audit('q', 5))?.length, 5)
})

within(
  'many large bodies are read without losing the connection as a slow consumer',
  async (bench) => {
    const body = new Uint8Array(bench.transport.traits.limits.bodyBytes)
    const ids = Array.from({ length: 100 }, (_, at) => `m${at}`)
    const sent = await bench.transport.send(
      'q',
      ids.map((id) => envelope(id, { body })),
      { signal },
    )
    assert.ok(sent.every((outcome) => outcome.ok))
    const subscription = await bench.subscribe()
    const got = new Set<string>()
    await until('all of them', async () => {
      const deliveries = await subscription.receive({ max: 1_000, waitMs: 500, signal })
      for (const { envelope: each, deliveries: times } of deliveries) {
        assert.equal(times, 1)
        got.add(each.id)
      }
      return got.size === 100
    })
    assert.deepEqual(bench.transport.problems?.(), [])
  },
  // A busy machine moves 100 MB in more than the second of the others, and the server would be right to hand them out again.
  { ackWaitMs: 30_000, timeoutMs: 30_000 },
)

within(
  'a consumer that was deleted is made anew, and what was not acked comes again',
  async (bench) => {
    await bench.transport.send('q', [envelope('a')], { signal })
    const subscription = await bench.subscribe()
    const held = await one(subscription)
    await bench.manager.consumers.delete(`${bench.prefix}-queue-q`, bench.prefix)
    const [again] = await take(subscription, 1, 20_000)
    assert.equal(again?.envelope.id, 'a')
    const [late] = await subscription.settle([ack(held)])
    assert.equal(late?.ok, false)
    assert.ok(again)
    assert.deepEqual(await subscription.settle([ack(again)]), [{ ok: true }])
  },
)

within(
  'a stream that was deleted is said to be gone, and work goes on when it is there again',
  async (bench) => {
    const subscription = await bench.subscribe()
    // It may be over before the answer to the removal is here.
    const failing = subscription.receive({ max: 1, waitMs: 60_000, signal }).then(
      () => undefined,
      (cause: unknown) => cause,
    )
    await bench.manager.streams.delete(`${bench.prefix}-queue-q`)
    assert.equal(bench.transport.diagnose(await failing).code, 'notFound')
    const [sent] = await bench.transport.send('q', [envelope('a')], { signal })
    assert.ok(sent && !sent.ok)
    assert.equal(sent.fault.code, 'notFound')
    await ensureQ(bench.transport)
    await bench.transport.send('q', [envelope('a')], { signal })
    assert.equal((await one(subscription)).envelope.id, 'a')
  },
)

within('a queue that hands out nothing because too much is out says so', async (bench) => {
  const stream = `${bench.prefix}-queue-q`
  await bench.manager.consumers.update(stream, bench.prefix, { max_ack_pending: 1 })
  await bench.transport.send('q', [envelope('a'), envelope('b')], { signal })
  await one(await bench.subscribe())
  const other = await bench.subscribe()
  assert.deepEqual(await other.receive({ max: 1, waitMs: 300, signal }), [])
  await until('the problem', () => (bench.transport.problems?.() ?? []).length > 0)
  assert.match(
    bench.transport.problems?.()[0] ?? '',
    /queue "q" hands out nothing new.*max_ack_pending/,
  )
})

within(
  'a foreign message that fills the headers, or has an id that is none, can still die',
  async (bench) => {
    const fields = headers()
    fields.set('ce-id', 'no id '.repeat(100))
    fields.set('x-long', 'x'.repeat(64_000))
    const sent = await bench.raw.request(`${bench.prefix}.queue.q`, '{}', {
      headers: fields,
      timeout: 2_000,
    })
    assert.equal(sent.json<{ seq: number }>().seq, 1)
    const subscription = await bench.subscribe()
    const delivery = await one(subscription)
    const { id } = delivery.envelope
    assert.match(id, /^\d+-1$/)
    const attempt = { at: 1, errorClass: 'permanent', code: 'E', message: 'm' } as const
    const act = { delivery, reason: 'ж'.repeat(9_000), errorClass: 'permanent', attempt } as const
    assert.deepEqual(await subscription.settle([{ as: 'dead', ...act }]), [{ ok: true }])
    const letter = await bench.transport.shelf?.get('q', id)
    assert.equal(letter?.history.records.length, 1)
    assert.equal(new TextDecoder().decode(letter?.envelope.body), '{}')
    const note = { actor: 'a', reason: 'b' }
    assert.deepEqual(await bench.transport.shelf?.redrive('q', [id], note), [id])
    assert.equal((await one(subscription)).envelope.id, id)
  },
)

within(
  'headers of a sender that leave no room for a death are refused as too large',
  async (bench) => {
    const large = envelope('a', { headers: { x: 'x'.repeat(60_000) } })
    const most = envelope('b', { headers: { x: 'x'.repeat(56_000) } })
    const outcomes = await bench.transport.send('q', [large, most], { signal })
    assert.deepEqual(
      outcomes.map((each) => each.ok || each.fault.code),
      ['tooLarge', true],
    )
    const subscription = await bench.subscribe()
    const delivery = await one(subscription)
    await subscription.settle([{ as: 'dead', delivery, reason: 'no', errorClass: 'permanent' }])
    const letter = await bench.transport.shelf?.get('q', 'b')
    assert.equal(letter?.envelope.headers.x?.length, 56_000)
  },
)

within('a close with messages in hand leaves no timer that keeps the process up', async (bench) => {
  const real = systemClock()
  const timers = new Set<object>()
  const clock: Clock = {
    now: real.now,
    after(ms, run) {
      const timer = {}
      timers.add(timer)
      const cancel = real.after(ms, () => {
        timers.delete(timer)
        run()
      })
      return () => {
        timers.delete(timer)
        cancel()
      }
    },
  }
  const transport = await nats({ servers: servers ?? '', prefix: bench.prefix }).connect({
    ...{ signal, clock, random: Math.random, logger: silentLogger },
    migrate: 'auto',
  })
  await ensureQ(transport)
  await transport.send('q', [envelope('a')], { signal })
  const from = await bench.subscribe(transport)
  assert.equal((await take(from, 1)).length, 1)
  await transport.close()
  assert.equal(timers.size, 0)
})

within('of two settlements of one message at once only the first counts', async (bench) => {
  await bench.transport.send('q', [envelope('a')], { signal })
  const subscription = await bench.subscribe()
  const delivery = await one(subscription)
  const counted = { as: 'released', delivery, delayMs: 0, counted: true } as const
  const [first, second] = await Promise.all([
    subscription.settle([{ as: 'acked', delivery }]),
    subscription.settle([counted]),
  ])
  assert.deepEqual(first, [{ ok: true }])
  assert.equal(second[0]?.ok === false && second[0].fault.code, 'lost')
})

within(
  'what could not be settled is still in hand, and may be settled otherwise',
  async (bench) => {
    await bench.transport.send('q', [envelope('a')], { signal })
    const subscription = await bench.subscribe()
    const delivery = await one(subscription)
    // Nobody keeps its letters any more.
    await bench.manager.streams.delete(`${bench.prefix}-shelf-q`)
    const dead = { as: 'dead', delivery, errorClass: 'permanent', reason: 'no' } as const
    const [refused] = await subscription.settle([dead])
    assert.ok(refused?.ok === false && refused.fault.code !== 'lost', JSON.stringify(refused))
    assert.equal(delivery.claim.lost.aborted, false)
    assert.deepEqual(await subscription.settle([{ as: 'acked', delivery }]), [{ ok: true }])
  },
)

/** A process that is stopped while it settles, as a connection sees it: it goes on late, and by its clock no time has passed. */
async function stoppedHolder({ another, transport }: NatsBench) {
  let passedMs = 0
  const startedAt = Date.now()
  const clock: Clock = { now: () => startedAt + passedMs, after: () => () => {} }
  const subscription = await (await another({}, clock)).subscribe('q', {
    ...{ group: 'g', leaseMs: 60_000, maxInFlight: 1 },
  })
  await transport.send('q', [envelope('a')], { signal })
  const delivery = await one(subscription)
  return {
    settle: async (afterSayingMs = 0) => {
      const settled = subscription.settle([released(delivery)])
      passedMs = afterSayingMs
      return await settled
    },
  }
}

within(
  'what a stopped holder writes late about its attempt is not taken for the end of a later one',
  async (bench) => {
    const stopped = await stoppedHolder(bench)
    const next = await bench.subscribe()
    for (const deliveries of [2, 3, 4]) {
      const delivery = await one(next)
      assert.equal(delivery.deliveries, deliveries)
      await next.settle([released(delivery)])
    }
    const [answer] = await stopped.settle()
    const { deliveries, history } = await one(next)
    // The stopped one is the only one that vanished.
    assert.deepEqual([answer, deliveries, history.crashes], [lost, 5, 1])
  },
)

within(
  'a holder that was stopped while it wrote takes nothing from who has it now',
  async (bench) => {
    const stopped = await stoppedHolder(bench)
    const next = await bench.subscribe()
    const delivery = await one(next)
    const [answer] = await stopped.settle(2_000)
    assert.deepEqual(answer, lost)
    assert.deepEqual(await take(next, 1, 500), [])
    assert.deepEqual(await next.settle([released(delivery)]), [settled])
    assert.equal((await one(next)).deliveries, 3)
  },
)
