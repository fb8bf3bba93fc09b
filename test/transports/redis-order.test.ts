import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Subscription } from '../../src/transport/transport.ts'
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
if (servers.length === 0) test('redis, order', { skip: NO_REDIS }, () => {})

for (const { name, url } of servers) {
  describe(`${name}, order`, () => {
    test('When all is done nothing is left of any key, whatever ended its messages.', () =>
      nothingLeft(url))
    test('Whatever ends a head puts the next one of its key in its place, in the same step.', () =>
      movesOn(url))
    test('A version without lines finds no queue once keys stand in lines, and none before is disturbed.', () =>
      olderVersion(url))
    test('What another producer or an older version stored with a key is lined up before it is handed out.', () =>
      linedUp(url))
    test('A long row of foreign messages of one key does not keep others from being received.', () =>
      foreignRow(url))
    test('A key whose head another program removed goes on.', () => headRemoved(url))
    test('A head whose entry was deleted in the hands of a worker that vanished is a dead letter, which halts its key where deaths do.', () =>
      headLost(url))
    test('A message that lost its body while it waited is a dead letter, and its key goes on.', () =>
      waitingLost(url))
    test('One key that begins as another one, or looks like what stands behind it, is another key.', () =>
      likeKeys(url))
    test('An ack wakes a receive of another process that waits for the next one of the key.', () =>
      woken(url))
  })
}

function keyed(...ids: readonly string[]): readonly Envelope[] {
  return ids.map((id) => envelope(id, { orderingKey: id.slice(0, 1) }))
}

/** Takes and acks until nothing comes; answers what came, batch by batch. */
async function drained(from: Subscription): Promise<readonly (readonly string[])[]> {
  const batches: (readonly string[])[] = []
  for (;;) {
    const batch = await takeAll(from)
    if (batch.length === 0) return batches
    batches.push(idsOf(batch))
    await ackAll(from, batch)
  }
}

async function haltingQueue(bench: Bench): Promise<void> {
  const spec = { name: 'q', owner: 'team', maxDepth: undefined, onDead: 'halt-key' } as const
  await bench.transport.topology.ensure([spec], signal)
}

async function nothingLeft(url: string): Promise<void> {
  const bench = await open(url)
  const { transport, raw, key } = bench
  const sent = Array.from({ length: 240 }, (_, n) =>
    envelope(`m${n}`, { orderingKey: `k${n % 12}`, ...(n % 7 === 0 ? { delayMs: 10 } : {}) }),
  )
  await transport.send('q', sent, { signal })
  await transport.browse?.cancel?.('q', 'm0')
  await transport.browse?.cancel?.('q', 'm30')
  const from = await subscribeTo(transport)
  let left = sent.length - 2
  await until('all have ended', async () => {
    const batch = await from.receive({ max: 40, waitMs: 50, signal })
    const acts = batch.map((delivery, n) => {
      if (n % 5 === 0 && delivery.deliveries === 1) {
        return { as: 'released', delivery, delayMs: n, counted: true } as const
      }
      if (n % 5 === 1) {
        return { as: 'dead', delivery, errorClass: 'permanent', reason: 'no' } as const
      }
      return { as: 'acked', delivery } as const
    })
    assert.ok((await from.settle(acts)).every(({ ok }) => ok))
    left -= acts.filter(({ as }) => as !== 'released').length
    return left === 0
  })
  for (const gone of ['heads', 'behind', 'halted', 'ids', 'parked', 'scheduled', 'claims']) {
    assert.equal(await raw.sendCommand(['EXISTS', key(gone)]), 0, gone)
  }
  assert.equal(await raw.sendCommand(['XLEN', key('ready')]), 0)
}

async function movesOn(url: string): Promise<void> {
  const bench = await open(url)
  const { transport, raw, key } = bench
  await haltingQueue(bench)
  const { browse, shelf, haltedKeys } = transport
  const note = { actor: 'me', reason: 'test' }
  const head = (): Promise<unknown> => raw.sendCommand(['HGET', key('heads'), 'A'])
  const ids = Array.from({ length: 9 }, (_, n) => `A${n + 1}`)
  await transport.send('q', keyed(...ids), { signal })
  const from = await subscribeTo(transport)
  const die = async (): Promise<void> => {
    const [delivery] = await takeAll(from)
    assert.ok(delivery)
    await from.settle([{ as: 'dead', delivery, errorClass: 'permanent', reason: 'no' }])
    assert.match(String(await head()), /^x/)
  }
  await browse?.cancel?.('q', 'A1')
  assert.equal(await head(), 'hA2')
  await takeAll(from)
  await browse?.cancel?.('q', 'A2')
  assert.equal(await head(), 'hA3')
  await ackAll(from, await takeAll(from))
  assert.equal(await head(), 'hA4')
  await die()
  await shelf?.discard('q', ['A4'], note)
  assert.equal(await head(), 'hA5')
  await die()
  await haltedKeys?.skip('q', ['A'], note)
  assert.equal(await head(), 'hA6')
  await die()
  await shelf?.redrive('q', ['A6'], note)
  assert.equal(await head(), 'hA6')
  assert.equal(await raw.sendCommand(['EXISTS', key('halted')]), 0)
  await browse?.purge?.('q')
  assert.equal(await head(), null)
  await transport.send('q', [envelope('late', { orderingKey: 'A', delayMs: 60_000 })], { signal })
  assert.equal(await head(), 'hlate')
  await browse?.purge?.('q')
  assert.equal(await head(), null)
}

async function olderVersion(url: string): Promise<void> {
  const { transport, raw, key } = await open(url)
  // All that a version without lines looks for, and compares.
  const seen = (): Promise<unknown> =>
    raw.sendCommand(['HMGET', key('meta'), 'owner', 'layout', 'keeper'])
  await transport.send('q', [envelope('plain')], { signal })
  assert.deepEqual(await seen(), ['team', '1', null])
  await transport.send('q', keyed('A1', 'A2'), { signal })
  assert.deepEqual(await seen(), [null, '2', 'team'])
  const spec = { name: 'q', owner: 'others', maxDepth: undefined }
  await transport.topology.ensure([spec], signal)
  assert.deepEqual(await seen(), [null, '2', 'others'])
  const from = await subscribeTo(transport)
  const [plain, head] = await takeAll(from)
  assert.ok(plain && head)
  await from.settle([{ as: 'dead', delivery: head, errorClass: 'permanent', reason: 'no' }])
  assert.equal((await transport.shelf?.get('q', 'A1'))?.owner, 'others')
}

async function linedUp(url: string): Promise<void> {
  const { transport, raw, key } = await open(url)
  const stored = async (id: string): Promise<void> => {
    const fields = ['id', id, 'body', 'x', 'orderingKey', id.slice(0, 1)]
    const entryId = await raw.sendCommand(['XADD', key('ready'), '*', ...fields])
    // Another producer leaves this out.
    if (id !== 'A2') await raw.sendCommand(['HSET', key('ids'), id, String(entryId)])
  }
  for (const id of ['A1', 'A2', 'B1', 'A3', 'B2']) await stored(id)
  await transport.send('q', keyed('A4'), { signal })
  const from = await subscribeTo(transport)
  const first = await takeAll(from)
  // A4 came before anybody had looked at the others.
  assert.deepEqual(idsOf(first), ['B1', 'A4'])
  assert.equal((await transport.browse?.gauge('q'))?.depth, 4)
  assert.equal((await transport.browse?.get?.('q', 'A2'))?.state, 'ready')
  await ackAll(from, first)
  assert.deepEqual(await drained(from), [['B2', 'A1'], ['A2'], ['A3']])
}

async function foreignRow(url: string): Promise<void> {
  const { transport, raw, key } = await open(url)
  for (let n = 0; n < 60; n++) {
    const fields = ['id', `A${n}`, 'body', 'x', 'orderingKey', 'A']
    await raw.sendCommand(['XADD', key('ready'), '*', ...fields])
  }
  await transport.send('q', keyed('B1'), { signal })
  const from = await subscribeTo(transport)
  const held = await from.receive({ max: 2, waitMs: 0, signal })
  assert.deepEqual(idsOf(held), ['A0'])
  const [other] = await from.receive({ max: 2, waitMs: 5_000, signal })
  assert.equal(other?.envelope.id, 'B1')
}

async function headRemoved(url: string): Promise<void> {
  const bench = await open(url)
  const { transport, raw, key } = bench
  await transport.send('q', keyed('A1', 'A2', 'A3'), { signal })
  // As a version without lines cancels.
  const entryId = await raw.sendCommand(['HGET', key('ids'), 'A1'])
  await raw.sendCommand(['XDEL', key('ready'), String(entryId)])
  await raw.sendCommand(['HDEL', key('ids'), 'A1'])
  const from = await subscribeTo(transport)
  const [next] = await from.receive({ max: 5, waitMs: 5_000, signal })
  assert.equal(next?.envelope.id, 'A2')
}

async function headLost(url: string): Promise<void> {
  for (const halts of [false, true]) {
    const bench = await open(url)
    const { transport, raw, key } = bench
    if (halts) await haltingQueue(bench)
    await transport.send('q', keyed('A1', 'A2'), { signal })
    const vanishing = await subscribeTo(await bench.another(), 100)
    assert.deepEqual(idsOf(await takeAll(vanishing)), ['A1'])
    const entryId = await raw.sendCommand(['HGET', key('ids'), 'A1'])
    await raw.sendCommand(['XDEL', key('ready'), String(entryId)])
    const from = await subscribeTo(transport)
    if (halts) {
      await until('the key is halted', async () => {
        assert.deepEqual(await takeAll(from), [])
        return (await transport.haltedKeys?.get('q', 'A'))?.messageId === 'A1'
      })
      await transport.haltedKeys?.skip('q', ['A'], { actor: 'me', reason: 'lost' })
    }
    const [next] = await from.receive({ max: 5, waitMs: 15_000, signal })
    assert.equal(next?.envelope.id, 'A2')
    assert.match((await transport.shelf?.get('q', 'A1'))?.reason ?? '', /^body lost/)
  }
}

async function waitingLost(url: string): Promise<void> {
  const { transport, raw, key } = await open(url)
  await transport.send('q', keyed('A1', 'A2', 'A3'), { signal })
  await raw.sendCommand(['HDEL', key('parked'), 'A2'])
  const from = await subscribeTo(transport)
  assert.deepEqual(await drained(from), [['A1'], ['A3']])
  assert.match((await transport.shelf?.get('q', 'A2'))?.reason ?? '', /^body lost.*behind/)
  await transport.send('q', keyed('B1', 'B2', 'B3'), { signal })
  await raw.sendCommand(['DEL', key('behind')])
  const second = await subscribeTo(transport)
  const [head] = await takeAll(second)
  assert.ok(head)
  assert.deepEqual(await takeAll(second), [])
  assert.equal((await transport.browse?.gauge('q'))?.dead, 3)
  await ackAll(second, [head])
  await transport.send('q', keyed('B4'), { signal })
  assert.deepEqual(await drained(second), [['B4']])
}

async function likeKeys(url: string): Promise<void> {
  const { transport } = await open(url)
  const place = `${'1'.repeat(31)}`
  const keys = ['a', `a${place}`, `a${place}0`, 'a\0b', 'a:', '0001a', '']
  const ids = ['1', '2'].flatMap((turn) => keys.map((_, n) => `${n}-${turn}`))
  const sent = ids.map((id) => envelope(id, { orderingKey: keys[Number(id.split('-')[0])] ?? '?' }))
  await transport.send('q', sent, { signal })
  const from = await subscribeTo(transport)
  const half = ids.length / 2
  assert.deepEqual(await drained(from), [ids.slice(0, half), ids.slice(half)])
}

async function woken(url: string): Promise<void> {
  const bench = await open(url, { pollMs: 60_000 })
  await bench.transport.send('q', keyed('A1', 'A2'), { signal })
  const from = await subscribeTo(bench.transport)
  const head = await takeAll(from)
  const other = await subscribeTo(await bench.another())
  const next = other.receive({ max: 5, waitMs: 30_000, signal })
  await until('it waits', async () => {
    return (await bench.raw.sendCommand(['HGET', bench.key('meta'), 'waiting'])) === '1'
  })
  await ackAll(from, head)
  const startedAt = performance.now()
  assert.deepEqual(idsOf(await next), ['A2'])
  assert.ok(performance.now() - startedAt < 10_000)
}
