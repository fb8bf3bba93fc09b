import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { connect as dial } from '@nats-io/transport-node'
import { type NatsSettings, nats } from 'millrace/nats'
import { systemClock } from '../../src/model/clock.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { laneOf } from '../../src/transports/nats/lane.ts'
import { backendUrl } from '../backends.ts'
import { ack, envelope, one, openNats, released, signal, take } from './nats-bench.ts'
import { connecting } from './nats-harness.ts'
import { until } from './until.ts'

const address = backendUrl('nats')
const servers = address ?? ''
const LANES = 8

function within(title: string, body: (t: TestContext) => Promise<void>): void {
  if (address !== undefined) test(`nats, lanes: ${title}`, body)
}

/** The queue `w`, with lanes; `subscribe` opens a connection of its own each time. */
async function laned(t: TestContext, settings: NatsSettings = {}) {
  const bench = await openNats(servers, { lanes: LANES, ...settings })
  t.after(() => bench.dispose())
  await ensureOrdered(bench.transport)
  const subscribe = async (leaseMs = 60_000): Promise<Subscription> =>
    (await bench.another()).subscribe('w', { group: 'g', leaseMs, maxInFlight: 100 })
  const send = async (...batch: readonly Envelope[]): Promise<void> => {
    const sent = await bench.transport.send('w', batch, { signal })
    for (const each of sent) assert.ok(each.ok, JSON.stringify(each))
  }
  /** A connection of somebody who knows of no lanes. */
  const unlaned = async (): Promise<Transport> => {
    const transport = await connecting(nats({ servers, prefix: bench.prefix }))
    t.after(() => transport.close())
    return transport
  }
  return { ...bench, subscribe, send, unlaned }
}

function ensureOrdered(transport: Transport): Promise<void> {
  const spec = { name: 'w', owner: 'team', maxDepth: undefined, ordered: true } as const
  return transport.topology.ensure([spec], signal)
}

/** `A1`: the first of key A. The keys A, B, C and D are in lanes of their own. */
function keyed(...ids: readonly string[]): readonly Envelope[] {
  return ids.map((id) => envelope(id, { orderingKey: id.slice(0, 1) }))
}

/** Where a server from 2.12 on keeps what is delayed. */
function later({ traits }: Transport, prefix: string, queue: string): readonly string[] {
  return traits.delay === 'none' ? [] : [`${prefix}.later.${queue}.*`]
}

function idsOf(all: readonly Delivery[]): readonly string[] {
  return all.map((each) => each.envelope.id)
}

/** All that is ready for it now. */
function look(from: Subscription): Promise<readonly Delivery[]> {
  return from.receive({ max: 50, waitMs: 200, signal })
}

test('nats, lanes: the lane of a key is the CRC-32 of its UTF-8 bytes modulo their number', () => {
  // Whoever computes it elsewhere can check with these.
  assert.equal(laneOf('123456789', 4_294_967_296), 0xcbf43926)
  assert.deepEqual(
    ['acc-1', 'acc-2', 'customer-42', 'Zürich'].map((key) => laneOf(key, 16)),
    [1, 11, 5, 14],
  )
})

within(
  'a message with a key is published to its lane, and one without where it always was',
  async (t) => {
    const { raw, manager, prefix, transport, send, subscribe } = await laned(t)
    const stream = `${prefix}-queue-w`
    const { subjects } = (await manager.streams.info(stream)).config
    const subject = `${prefix}.queue.w`
    const lanes = Array.from({ length: LANES }, (_, lane) => `${subject}.lane.${LANES}.${lane}`)
    assert.deepEqual(
      [...subjects].sort(),
      [subject, ...lanes, ...later(transport, prefix, 'w')].sort(),
    )
    await send(...keyed('A1'), envelope('plain'))
    const subjectOf = async (seq: number) =>
      (await manager.streams.getMessage(stream, { seq }))?.subject
    assert.equal(await subjectOf(1), `${subject}.lane.${LANES}.${laneOf('A', LANES)}`)
    assert.equal(await subjectOf(2), subject)
    // Another program that computes the lane takes its turn.
    await raw.request(`${subject}.lane.${LANES}.${laneOf('A', LANES)}`, 'from elsewhere')
    const from = await subscribe()
    const first = await take(from, 2)
    assert.deepEqual([...idsOf(first)].sort(), ['A1', 'plain'])
    assert.deepEqual(
      first.map(({ lane }) => lane).sort(),
      [String(laneOf('A', LANES)), undefined].sort(),
    )
    await from.settle(first.map(ack))
    assert.equal(new TextDecoder().decode((await one(from)).envelope.body), 'from elsewhere')
  },
)

within('of a batch, nothing of a key is stored behind one that failed', async (t) => {
  const { transport, subscribe } = await laned(t)
  const [a1, a2, a3, b1] = keyed('A1', 'A2', 'A3', 'B1')
  assert.ok(a1 && a2 && a3 && b1)
  const tooLarge = { ...a2, headers: { large: 'x'.repeat(60_000) } }
  const sent = await transport.send('w', [a1, tooLarge, a3, b1], { signal })
  assert.deepEqual(
    sent.map((each) => (each.ok ? 'stored' : `${each.fault.code} ${each.fault.outcome}`)),
    ['stored', 'tooLarge notApplied', 'tooLarge notApplied', 'stored'],
  )
  const from = await subscribe()
  const first = await take(from, 2)
  assert.deepEqual([...idsOf(first)].sort(), ['A1', 'B1'])
  await from.settle(first.map(ack))
  assert.deepEqual(await look(from), [])
})

within(
  'a queue without an ordering key is made as it was, and a key for it is refused by name',
  async (t) => {
    const { transport, manager, prefix } = await laned(t)
    const { subjects } = (await manager.streams.info(`${prefix}-queue-q`)).config
    assert.deepEqual(subjects, [`${prefix}.queue.q`, ...later(transport, prefix, 'q')])
    const [sent] = await transport.send('q', keyed('A1'), { signal })
    assert.ok(sent?.ok === false && sent.fault.code === 'invalid')
    assert.match(
      String(sent.fault.cause),
      /of queue "q" has no lanes, so a message with an ordering key/,
    )
  },
)

within(
  'another number of lanes is refused at start in one line, and so is it without looking, at the send',
  async (t) => {
    const { prefix, another, transport, send, subscribe } = await laned(t)
    for (const topology of ['create', 'check'] as const) {
      const other = await another({ lanes: 16, topology })
      const [only, ...more] =
        (await other.topology.differences?.(
          [{ name: 'w', owner: 'team', maxDepth: undefined, ordered: true }],
          signal,
        )) ?? []
      assert.match(
        only ?? '',
        /has 8 lanes, and lanes is 16 here, so that keys would change their lane; pass lanes: 8/,
      )
      assert.deepEqual(more, [])
      await assert.rejects(ensureOrdered(other), { problems: [only] })
    }
    const blind = await another({ lanes: 16, topology: 'none' })
    await ensureOrdered(blind)
    const [sent] = await blind.send('w', keyed('A1'), { signal })
    assert.ok(sent?.ok === false && sent.fault.code === 'invalid')
    assert.match(
      String(sent.fault.cause),
      /has 8 lanes, and the message was meant for another number .* pass lanes: 8/,
    )
    // What is right goes on meanwhile, and a queue may say a number of its own.
    await send(...keyed('A1'))
    const own = await another({ lanes: 16, queues: { w: { lanes: LANES } } })
    await ensureOrdered(own)
    assert.ok((await own.send('w', keyed('A2'), { signal }))[0]?.ok)
    const from = await subscribe()
    await from.settle([ack(await one(from))])
    assert.equal((await one(from)).envelope.id, 'A2')
    await assert.rejects(
      transport.topology.ensure(
        [{ name: 'q', owner: 'team', maxDepth: undefined, ordered: true }],
        signal,
      ),
      new RegExp(
        `stream ${prefix}-queue-q of queue "q" has no lanes, and the queue has an orderingKey; let the queue become empty`,
      ),
    )
  },
)

within(
  'a lane that would hand out two at a time, or go on behind a message in silence, is refused',
  async (t) => {
    const { prefix, manager, another } = await laned(t)
    const consumer = `${prefix}-lane-3`
    await manager.consumers.update(`${prefix}-queue-w`, consumer, {
      max_ack_pending: 2,
      max_deliver: 5,
    })
    await manager.consumers.delete(`${prefix}-queue-w`, `${prefix}-lane-5`)
    const found = await (await another({ topology: 'check' })).topology.differences?.(
      [{ name: 'w', owner: 'team', maxDepth: undefined, ordered: true }],
      signal,
    )
    assert.equal(found?.length, 3, found?.join('\n'))
    assert.match(found[0] ?? '', new RegExp(`consumer ${consumer} .* max_deliver is 5`))
    assert.match(
      found[1] ?? '',
      new RegExp(`consumer ${consumer} .* max_ack_pending is 2; .* set it to 1`),
    )
    assert.match(found[2] ?? '', new RegExp(`needs consumer ${prefix}-lane-5, which is not there`))
  },
)

within(
  'what waits for its delay, or comes back after an ack wait, keeps its lane waiting and no other',
  async (t) => {
    const { send, subscribe, prefix } = await laned(t)
    await send(...keyed('A1', 'B1', 'A2', 'B2'))
    const first = await subscribe()
    const [a1, b1] = [...(await take(first, 2))].sort((x, y) =>
      x.envelope.id < y.envelope.id ? -1 : 1,
    )
    assert.ok(a1 && b1)
    await first.settle([released(a1, 1_500), ack(b1)])
    const releasedAt = Date.now()
    const second = await subscribe()
    assert.equal((await one(second)).envelope.id, 'B2')
    const back = await one(second)
    assert.equal(back.envelope.id, 'A1')
    assert.ok(Date.now() - releasedAt >= 1_400)
    // A holder that vanishes: its ack wait has to run out.
    await second.settle([released(back)])
    const connection = await dial({ servers })
    const doomed = await connecting(nats({ connection, prefix, lanes: LANES }))
    const third = await doomed.subscribe('w', { group: 'g', leaseMs: 60_000, maxInFlight: 1 })
    assert.equal((await one(third)).envelope.id, 'A1')
    await connection.close()
    const vanishedAt = Date.now()
    const again = await one(second)
    assert.equal(again.envelope.id, 'A1')
    assert.ok(Date.now() - vanishedAt >= 500)
    assert.equal(again.history.crashes, 1)
    assert.deepEqual(await look(second), [])
    await second.settle([ack(again)])
    assert.equal((await one(second)).envelope.id, 'A2')
  },
)

within('a worker with no slot left holds no lane', async (t) => {
  const { send, subscribe } = await laned(t)
  const busy = await subscribe()
  await send(...keyed('A1'))
  const [held] = await busy.receive({ max: 1, waitMs: 5_000, signal })
  assert.equal(held?.envelope.id, 'A1')
  const free = await subscribe()
  await send(...keyed('B1', 'C1', 'D1'))
  const came = await take(free, 3)
  assert.deepEqual([...idsOf(came)].sort(), ['B1', 'C1', 'D1'])
  // They came from nobody else.
  assert.deepEqual(
    came.map(({ deliveries }) => deliveries),
    [1, 1, 1],
  )
})

within(
  'what comes at once beyond the slots of a worker goes on to others, and counts as no attempt',
  async (t) => {
    const { send, subscribe, manager, prefix } = await laned(t)
    const narrow = await subscribe()
    const waiting = narrow.receive({ max: 1, waitMs: 10_000, signal })
    await until('it waits at every lane', async () => {
      const infos = await Promise.all(
        Array.from({ length: LANES }, (_, lane) =>
          manager.consumers.info(`${prefix}-queue-w`, `${prefix}-lane-${lane}`),
        ),
      )
      return infos.every(({ num_waiting }) => num_waiting === 1)
    })
    await send(...keyed('A1', 'B1', 'C1', 'D1'))
    const mine = await waiting
    assert.equal(mine.length, 1)
    const others = await take(await subscribe(), 3)
    assert.deepEqual([...idsOf([...mine, ...others])].sort(), ['A1', 'B1', 'C1', 'D1'])
    for (const { history, alone } of others)
      assert.deepEqual([history.counted, history.crashes, alone], [0, 0, false])
  },
)

within('between two receives what has come waits for a moment and then goes back', async (t) => {
  const { send, subscribe } = await laned(t)
  const idle = await subscribe()
  await send(...keyed('A1'))
  // Room for four more, and nobody asks again.
  assert.deepEqual(idsOf(await idle.receive({ max: 5, waitMs: 5_000, signal })), ['A1'])
  await send(...keyed('B1', 'C1'))
  const came = await take(await subscribe(), 2)
  assert.deepEqual([...idsOf(came)].sort(), ['B1', 'C1'])
  // Not because their ack wait ran out, which would count as a crash.
  for (const { history } of came) assert.equal(history.crashes, 0)
})

within('a receive that waits asks each lane once, and no more', async (t) => {
  const bench = await laned(t, { ackWaitMs: 30_000 })
  const connection = await dial({ servers })
  t.after(() => connection.close())
  const transport = await connecting(nats({ connection, prefix: bench.prefix, lanes: LANES }))
  const from = await transport.subscribe('w', { group: 'g', leaseMs: 60_000, maxInFlight: 1 })
  const before = connection.stats().outMsgs
  assert.deepEqual(await from.receive({ max: 1, waitMs: 3_000, signal }), [])
  assert.equal(connection.stats().outMsgs - before, LANES + 1 + 1)
  await transport.close()
})

within(
  'a consumer of a lane that is deleted is made anew, and only what was in hand of it is lost',
  async (t) => {
    const { send, subscribe, manager, prefix } = await laned(t)
    await send(...keyed('A1', 'A2', 'B1'))
    const from = await subscribe()
    const came = await take(from, 2)
    const waiting = from.receive({ max: 5, waitMs: 10_000, signal })
    await manager.consumers.delete(`${prefix}-queue-w`, `${prefix}-lane-${laneOf('A', LANES)}`)
    const [again] = await waiting
    assert.equal(again?.envelope.id, 'A1')
    assert.deepEqual(came.map(({ envelope: { id }, claim }) => [id, claim.lost.aborted]).sort(), [
      ['A1', true],
      ['B1', false],
    ])
  },
)

within('a key that comes beside its lane is told once', async (t) => {
  const lines: string[] = []
  const bench = await laned(t)
  const logger = { ...silentLogger, warn: (line: string) => void lines.push(line) }
  const clock = systemClock()
  const transport = await nats({ servers, prefix: bench.prefix, lanes: LANES }).connect({
    ...{ signal, clock, logger, random: Math.random, migrate: 'auto' },
  })
  t.after(() => transport.close())
  // Its sender knows of no lanes.
  const old = await bench.unlaned()
  await old.send('w', keyed('A1', 'A2'), { signal })
  const from = await transport.subscribe('w', { group: 'g', leaseMs: 60_000, maxInFlight: 9 })
  assert.deepEqual(idsOf(await take(from, 2)), ['A1', 'A2'])
  const told = lines.filter((line) => /came beside its lane/.test(line))
  assert.equal(told.length, 1)
  assert.match(told[0] ?? '', /queue "w": a message with the ordering key "A" came beside its lane/)
})
