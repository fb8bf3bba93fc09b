import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import fc from 'fast-check'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { standing } from '../../src/transport/ageing.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { byDepth } from '../depth.ts'
import {
  ackAll,
  type Bench,
  envelope,
  idsOf,
  open,
  signal,
  subscribeTo,
  takeAll,
} from './redis-bench.ts'
import { NO_REDIS, redisServers } from './redis-servers.ts'
import { until } from './until.ts'

const servers = redisServers()
if (servers.length === 0) test('redis, levels', { skip: NO_REDIS }, () => {})

for (const { name, url } of servers) {
  describe(`${name}, levels of priority`, () => {
    test('Whatever stands on which level and since when, all is handed out in the order of ageing.', () =>
      inOrderOfAgeing(url))
    test('One receive takes from several levels, and one ack ends what is of them.', () =>
      acrossLevels(url))
    test('A part of a batch of several levels is renewed, the rest comes back.', () =>
      partRenewed(url))
    test('What is in hand when a subscription closes comes back on its level.', () => closed(url))
    test('Retries, delays, crashes and redrives keep the level.', () => keepsLevel(url))
    test('One key sent with two priorities is one message, also from two connections.', () =>
      oneKey(url))
    test('Two processes that send on all levels at once store exactly as many as the queue holds.', () =>
      exactCapacity(url))
    test('Messages are shown, cancelled and counted wherever they stand, and a purge leaves no level out.', () =>
      browsed(url))
    test('What is shed of a level is told on the shelf with its priority.', () => shedOf(url))
    test('A key keeps its order, whatever priority its messages have.', () => keyInOrder(url))
    test('A version without levels finds no queue once there are some, and none before is disturbed.', () =>
      olderVersion(url))
    test('An entry that was deleted on a level becomes a dead letter, before a worker had it and after.', () =>
      entriesDeleted(url))
    test('Ids that cannot be told apart in one answer are read on their levels.', () => oddIds(url))
    test('A message of another producer is no urgent one, whatever its fields are called.', () =>
      foreign(url))
    test('Where the stream was deleted and must not be made, the levels above go on, and an empty queue says so.', () =>
      streamDeleted(url))
  })
}

const never = { signal }

function at(priority: number, ...ids: readonly string[]): readonly Envelope[] {
  return ids.map((id) => envelope(id, { priority }))
}

/** Nothing waits and nobody holds anything. */
async function assertNothingLeft({ raw, key }: Bench): Promise<void> {
  for (const name of ['ids', 'claims', 'scheduled', 'parked']) {
    assert.equal(await raw.sendCommand(['EXISTS', key(name)]), 0, name)
  }
  for (let level = 0; level < 10; level++) {
    const stream = key(level === 0 ? 'ready' : `ready:${level}`)
    if ((await raw.sendCommand(['EXISTS', stream])) === 0) continue
    assert.equal(await raw.sendCommand(['XLEN', stream]), 0, stream)
    assert.deepEqual(await raw.sendCommand(['XINFO', 'CONSUMERS', stream, 'millrace']), [], stream)
  }
}

const placed = fc.record({
  priority: fc.integer({ min: 0, max: 9 }),
  steps: fc.integer({ min: 0, max: 40 }),
})
const runs = fc.record({
  messages: fc.array(placed, { minLength: 1, maxLength: 40, size: 'max' }),
  sizes: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 20 }),
  /** In steps, so that many stand alike. */
  ageing: fc.integer({ min: 1, max: 8 }),
  stepMs: fc.constantFrom(1, 1_000, 17_000),
})

/** Entries with moments of the past, as messages have that wait since then. */
async function inOrderOfAgeing(url: string): Promise<void> {
  const bench = await open(url)
  const { transport, raw, key } = bench
  const from = await subscribeTo(transport)
  let made = 0
  await fc.assert(
    fc.asyncProperty(runs, async ({ messages, sizes, ageing, stepMs }) => {
      const ageingMs = ageing * stepMs
      await raw.sendCommand(['DEL', ...(await keysOf(bench))])
      const spec = { name: 'q', owner: 'team', maxDepth: undefined, ageingMs }
      await transport.topology.ensure([spec], signal)
      const now = Date.now() - 1_000
      const sent = messages
        .map(({ priority, steps }) => ({
          ...{ priority, readyAt: now - steps * stepMs },
          id: `m${made++}`,
        }))
        .sort((a, b) => a.readyAt - b.readyAt)
      for (const [n, { id, priority, readyAt }] of sent.entries()) {
        const level = priority === 0 ? [] : ['millrace-priority', String(priority)]
        const stream = key(priority === 0 ? 'ready' : `ready:${priority}`)
        const entryId = `${readyAt}-${n}`
        await raw.sendCommand(['XADD', stream, entryId, 'id', id, 'body', 'x', ...level])
        const mark = priority === 0 ? '' : `p${priority}`
        await raw.sendCommand(['HSET', key('ids'), id, mark + entryId])
      }
      await raw.sendCommand(['HSET', key('meta'), 'layout', '3', 'levels', '10'])
      const got: Delivery[] = []
      for (let n = 0; got.length < sent.length; n++) {
        const some = await takeAll(from, sizes[n % sizes.length])
        assert.ok(some.length > 0, 'nothing came, and not all had come')
        got.push(...some)
      }
      const wanted = sent
        .map((one, n) => ({ ...one, n, stands: standing(one, ageingMs) }))
        .sort((a, b) => a.stands - b.stands || b.priority - a.priority || a.n - b.n)
      assert.deepEqual(
        got.map(({ envelope: { id, priority } }) => [id, priority]),
        wanted.map(({ id, priority }) => [id, priority]),
      )
      await ackAll(from, got)
      await assertNothingLeft(bench)
    }),
    { numRuns: byDepth({ quick: 25, full: 200, long: 1_000 }) },
  )
}

async function keysOf({ raw, key }: Bench): Promise<readonly string[]> {
  const names = [
    'meta',
    'ready',
    'suspects',
    ...Array.from({ length: 9 }, (_, n) => `ready:${n + 1}`),
  ]
  assert.equal(typeof (await raw.sendCommand(['EXISTS', key('meta')])), 'number')
  return names.map(key)
}

async function acrossLevels(url: string): Promise<void> {
  const bench = await open(url)
  const { transport } = bench
  const more = { headers: { traceparent: 't' } }
  await transport.send('q', [envelope('low', more), ...at(9, 'top'), ...at(3, 'a', 'b')], never)
  await transport.send('q', [envelope('c', { ...more, priority: 3 })], never)
  const from = await subscribeTo(transport)
  const all = await takeAll(from)
  assert.deepEqual(idsOf(all), ['top', 'a', 'b', 'c', 'low'])
  assert.deepEqual(
    all.map(({ envelope: { priority } }) => priority),
    [9, 3, 3, 3, 0],
  )
  assert.deepEqual(all[3]?.envelope.headers, more.headers)
  await ackAll(from, all)
  await assertNothingLeft(bench)
  // More than an ack deletes one by one.
  const many = Array.from({ length: 300 }, (_, n) => envelope(`n${n}`, { priority: n % 3 }))
  await transport.send('q', many, never)
  await ackAll(from, await takeAll(from, 1_000))
  await assertNothingLeft(bench)
}

async function partRenewed(url: string): Promise<void> {
  const bench = await open(url)
  const { transport } = bench
  const from = await subscribeTo(transport, 300)
  await transport.send('q', [...at(0, 'a', 'b'), ...at(5, 'c', 'd')], never)
  const all = await takeAll(from)
  assert.deepEqual(idsOf(all), ['c', 'd', 'a', 'b'])
  const kept = all.filter((_, n) => n % 2 === 0)
  const renewed = await from.renew?.(kept, 60_000)
  assert.ok(renewed?.every(({ ok }) => ok))
  const other = await subscribeTo(await bench.another())
  const back: Delivery[] = []
  await until('the others come back', async () => {
    back.push(...(await takeAll(other)))
    return back.length === 2
  })
  assert.deepEqual([...idsOf(back)].sort(), ['b', 'd'])
  assert.ok(back.every(({ alone }) => alone))
  assert.equal(back.find(({ envelope: { id } }) => id === 'd')?.envelope.priority, 5)
  await ackAll(from, kept)
  await ackAll(other, back)
  await assertNothingLeft(bench)
}

async function closed(url: string): Promise<void> {
  const bench = await open(url)
  const { transport, raw, key } = bench
  await transport.send('q', [...at(0, 'a'), ...at(1, 'b'), ...at(9, 'c')], never)
  const first = await subscribeTo(transport)
  assert.equal((await takeAll(first)).length, 3)
  await first.close()
  assert.equal(await raw.sendCommand(['XLEN', key('ready:9')]), 1)
  const again = await takeAll(await subscribeTo(await bench.another()))
  assert.deepEqual(idsOf(again), ['c', 'b', 'a'])
  assert.deepEqual(
    again.map(({ history }) => history.counted),
    [0, 0, 0],
  )
}

async function keepsLevel(url: string): Promise<void> {
  const bench = await open(url)
  const { transport } = bench
  const from = await subscribeTo(transport, 300)
  const priorityNow = async (id: string): Promise<number | undefined> =>
    (await transport.browse?.get?.('q', id))?.envelope.priority
  const taken = async (): Promise<Delivery> => {
    let one: Delivery | undefined
    await until('it comes', async () => {
      one = (await takeAll(from))[0]
      return one !== undefined
    })
    assert.ok(one)
    assert.equal(one.envelope.priority, 7)
    return one
  }
  await transport.send('q', [envelope('x', { priority: 7, delayMs: 20 })], never)
  assert.equal(await priorityNow('x'), 7)
  const released = { as: 'released', counted: true } as const
  await from.settle([{ ...released, delivery: await taken(), delayMs: 0 }])
  assert.equal(await priorityNow('x'), 7)
  await from.settle([{ ...released, delivery: await taken(), delayMs: 20 }])
  // Its lease runs out, as of a worker that vanished.
  await taken()
  const suspect = await taken()
  assert.ok(suspect.alone)
  await from.settle([{ as: 'dead', delivery: suspect, errorClass: 'permanent', reason: 'no' }])
  assert.equal((await transport.shelf?.get('q', 'x'))?.envelope.priority, 7)
  await transport.send('q', at(3, 'y'), never)
  await transport.shelf?.redrive('q', ['x'], { actor: 'a', reason: 'r' })
  const both = await takeAll(from)
  assert.deepEqual(idsOf(both), ['x', 'y'])
  await ackAll(from, both)
  await assertNothingLeft(bench)
}

async function oneKey(url: string): Promise<void> {
  const bench = await open(url)
  const other = await bench.another()
  const remembered = (id: string, priority: number, kind: 'dedupe' | 'idempotency', print = 'f') =>
    envelope(id, {
      priority,
      remember: [{ kind, key: 'k', fingerprint: print, windowMs: 60_000 }],
    })
  const sendTo = async (to: Transport, one: Envelope) => (await to.send('q', [one], never))[0]
  for (const kind of ['dedupe', 'idempotency'] as const) {
    const ids = [0, 1, 2, 3].map((n) => `${kind}-${n}`)
    const [low = '', high = '', third = '', conflict = ''] = ids
    const first = await sendTo(bench.transport, remembered(low, 0, kind))
    assert.deepEqual(first, { ok: true, id: low, duplicate: false })
    const second = await sendTo(other, remembered(high, 9, kind))
    assert.deepEqual(second, { ok: true, id: low, duplicate: true })
    assert.equal(await bench.raw.sendCommand(['EXISTS', bench.key('ready:9')]), 0)
    // Nor in one batch, nor under the same id.
    const batch = [remembered(third, 4, kind), envelope(low, { priority: 4 })]
    const outcomes = await other.send('q', batch, { ...never, atomic: true })
    assert.deepEqual(
      outcomes.map((one) => one.ok && [one.id, one.duplicate]),
      [
        [low, true],
        [low, true],
      ],
    )
    if (kind === 'dedupe') continue
    const refused = await sendTo(other, remembered(conflict, 9, kind, 'another'))
    assert.equal(refused && !refused.ok && refused.fault.code, 'conflict')
  }
  assert.equal((await other.browse?.gauge('q'))?.depth, 2)
}

const SENDER = fileURLToPath(new URL('./redis-levels-sender.ts', import.meta.url))

async function exactCapacity(url: string): Promise<void> {
  const bench = await open(url, { maxDepth: 150 })
  const flags = ['--conditions=millrace-source', '--disable-warning=ExperimentalWarning', SENDER]
  const senders = ['a', 'b'].map(async (name) => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      ...flags,
      url,
      bench.prefix,
      name,
    ])
    return Number(stdout)
  })
  const stored = await Promise.all(senders)
  assert.equal(
    stored.reduce((sum, count) => sum + count),
    150,
    `stored ${stored}`,
  )
  assert.equal((await bench.transport.browse?.gauge('q'))?.depth, 150)
  const from = await subscribeTo(bench.transport)
  const all = await takeAll(from, 1_000)
  assert.equal(new Set(idsOf(all)).size, 150)
  assert.ok(new Set(all.map(({ envelope: { priority } }) => priority)).size > 2)
  // In hand it counts; what ends makes room, on whatever level.
  const full = await bench.transport.send('q', at(9, 'more'), never)
  assert.equal(full[0]?.ok, false)
  await ackAll(from, all.slice(0, 1))
  const room = await bench.transport.send('q', [...at(0, 'fits'), ...at(9, 'not')], never)
  assert.deepEqual(
    room.map(({ ok }) => ok),
    [true, false],
  )
}

async function browsed(url: string): Promise<void> {
  const bench = await open(url)
  const { transport } = bench
  const { browse } = transport
  assert.ok(browse?.get && browse.cancel && browse.purge && browse.setPaused)
  const later = envelope('later', { priority: 4, delayMs: 60_000 })
  await transport.send('q', [...at(0, 'a'), ...at(4, 'b', 'c', 'd'), later], never)
  const from = await subscribeTo(transport)
  await takeAll(from, 1)
  assert.deepEqual(
    await Promise.all(
      ['a', 'b', 'c', 'later'].map(async (id) => {
        const found = await browse.get?.('q', id)
        return [found?.state, found?.envelope.priority]
      }),
    ),
    [
      ['ready', 0],
      ['in flight', 4],
      ['ready', 4],
      ['scheduled', 4],
    ],
  )
  const { depth, inFlight, scheduled } = await browse.gauge('q')
  assert.deepEqual([depth, inFlight, scheduled], [3, 1, 1])
  for (const id of ['b', 'c', 'later']) assert.equal(await browse.cancel('q', id), true, id)
  assert.equal(await browse.get('q', 'c'), undefined)
  await browse.setPaused('q', true)
  assert.deepEqual(await takeAll(from), [])
  await browse.setPaused('q', false)
  await transport.send('q', at(9, 'e'), never)
  const later2 = envelope('later', { priority: 9, delayMs: 60_000 })
  await transport.send('q', [later2], never)
  assert.equal(await browse.purge('q'), 4)
  const left = await browse.gauge('q')
  assert.deepEqual([left.depth, left.inFlight, left.scheduled], [0, 0, 0])
}

async function shedOf(url: string): Promise<void> {
  const bench = await open(url)
  const { transport } = bench
  const { shed } = transport
  assert.ok(shed)
  await transport.send('q', [...at(2, 'b'), ...at(1, 'a1', 'a2'), ...at(9, 'top')], never)
  const timed = (id: string, priority: number) => envelope(id, { priority, delayMs: 60_000 })
  await transport.send('q', [timed('late', 1), timed('lateTop', 9)], never)
  const options = { signal, reason: 'no room' }
  assert.equal(await shed('q', { ...options, max: 1, upTo: 9 }), 1)
  assert.equal((await transport.shelf?.get('q', 'a1'))?.envelope.priority, 1)
  assert.equal(await shed('q', { ...options, max: 9, upTo: 2 }), 3)
  const page = await transport.shelf?.list('q', { limit: 10 })
  assert.deepEqual(page?.items.map(({ envelope: { id } }) => id).sort(), ['a1', 'a2', 'b', 'late'])
  await transport.shelf?.redrive('q', ['b'], { actor: 'a', reason: 'r' })
  assert.deepEqual(idsOf(await takeAll(await subscribeTo(transport))), ['top', 'b'])
}

async function keyInOrder(url: string): Promise<void> {
  const bench = await open(url)
  const { transport } = bench
  const of = (id: string, priority: number): Envelope =>
    envelope(id, { orderingKey: id.slice(0, 1), priority })
  await transport.send('q', [of('A1', 0), of('A2', 9), of('B1', 5)], never)
  await transport.send('q', at(2, 'plain'), never)
  const from = await subscribeTo(transport)
  const first = await takeAll(from)
  assert.deepEqual(idsOf(first), ['B1', 'plain', 'A1'])
  await ackAll(from, first)
  const next = await takeAll(from)
  assert.deepEqual([idsOf(next), next[0]?.envelope.priority], [['A2'], 9])
  await ackAll(from, next)
  await assertNothingLeft(bench)
}

async function olderVersion(url: string): Promise<void> {
  const { transport, raw, key } = await open(url)
  // All that an older version looks for, and compares.
  const seen = (): Promise<unknown> =>
    raw.sendCommand(['HMGET', key('meta'), 'owner', 'layout', 'keeper', 'levels'])
  await transport.send('q', [envelope('plain')], never)
  assert.deepEqual(await seen(), ['team', '1', null, null])
  await transport.send('q', [envelope('later', { priority: 2, delayMs: 60_000 })], never)
  assert.deepEqual(await seen(), [null, '3', 'team', '3'])
  await transport.send('q', [...at(9, 'top'), envelope('key', { orderingKey: 'k' })], never)
  await transport.send('q', at(1, 'one'), never)
  assert.deepEqual(await seen(), [null, '3', 'team', '10'])
  await transport.topology.ensure([{ name: 'q', owner: 'others', maxDepth: undefined }], signal)
  assert.deepEqual(await seen(), [null, '3', 'others', '10'])
  const from = await subscribeTo(transport)
  assert.deepEqual(idsOf(await takeAll(from)), ['top', 'one', 'plain', 'key'])
}

async function entriesDeleted(url: string): Promise<void> {
  const bench = await open(url)
  const { transport, raw, key } = bench
  await transport.send('q', at(6, 'held', 'unread'), never)
  const from = await subscribeTo(transport, 200)
  assert.deepEqual(idsOf(await takeAll(from, 1)), ['held'])
  await raw.sendCommand(['XTRIM', key('ready:6'), 'MAXLEN', '0'])
  const reasons = async (): Promise<readonly (string | undefined)[]> =>
    Promise.all(['held', 'unread'].map(async (id) => (await transport.shelf?.get('q', id))?.reason))
  // Each look of a subscription is 10 s apart, unless something is lost.
  await until('both are dead letters', async () => {
    await takeAll(await subscribeTo(transport))
    return (await reasons()).every((reason) => reason?.startsWith('body lost') === true)
  })
  assert.equal((await transport.browse?.gauge('q'))?.dead, 2)
  await assertNothingLeft(bench)
}

async function oddIds(url: string): Promise<void> {
  const bench = await open(url)
  const { transport, raw, key } = bench
  await transport.send('q', [...at(6, 'a'), ...at(0, 'b')], never)
  const odd = ['id', 'two\nlines', 'body', 'x']
  await raw.sendCommand(['XADD', key('ready'), '*', ...odd])
  const from = await subscribeTo(transport)
  const all = await takeAll(from)
  assert.deepEqual(idsOf(all), ['a', 'b', 'two\nlines'])
  assert.equal(all[0]?.envelope.priority, 6)
  await ackAll(from, all.slice(0, 2))
}

async function foreign(url: string): Promise<void> {
  const bench = await open(url)
  const { transport, raw, key } = bench
  await transport.send('q', at(1, 'ours'), never)
  await raw.sendCommand(['XADD', key('ready'), '*', 'id', 'f', 'body', 'x', 'priority', '9'])
  await raw.sendCommand(['XADD', key('ready'), '*', 'millrace-priority', '9', 'id', 'y'])
  const from = await subscribeTo(transport)
  const all = await takeAll(from)
  const told = all.map(({ envelope: { priority } }) => priority)
  assert.deepEqual([all.length, told, idsOf(all).slice(0, 2)], [3, [1, 0, 0], ['ours', 'f']])
  const back = all.map(
    (delivery) => ({ as: 'released', delivery, delayMs: 0, counted: false }) as const,
  )
  await from.settle(back)
  const again = await takeAll(from)
  assert.deepEqual(idsOf(again).slice(0, 2), ['ours', 'f'])
  await ackAll(from, again)
  await assertNothingLeft(bench)
}

async function streamDeleted(url: string): Promise<void> {
  const bench = await open(url)
  const { raw, key } = bench
  const checked = await bench.another({ topology: 'check' })
  const from = await subscribeTo(checked)
  await bench.transport.send('q', at(2, 'a'), never)
  await raw.sendCommand(['DEL', key('ready')])
  const [a] = await takeAll(from)
  assert.equal(a?.envelope.id, 'a')
  await assert.rejects(takeAll(from), /has no consumer group/)
  // As when another program wrote to it meanwhile.
  await raw.sendCommand(['XADD', key('ready'), '*', 'body', 'x'])
  await bench.transport.send('q', at(2, 'b'), never)
  assert.deepEqual(idsOf(await takeAll(from)), ['b'])
  await assert.rejects(takeAll(from), /has no consumer group/)
}
