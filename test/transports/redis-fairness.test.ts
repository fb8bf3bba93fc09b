import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
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
if (servers.length === 0) test('redis, fairness', { skip: NO_REDIS }, () => {})

for (const { name, url } of servers) {
  describe(`${name}, fair keys`, () => {
    test('When all is done nothing is left of any key, whatever ended its messages.', () =>
      nothingLeft(url))
    test('Messages are shown, cancelled and counted while they wait for their turn and after.', () =>
      browsed(url))
    test('What came back takes a place again, and a suspect comes alone.', () => comesBack(url))
    test('What has no fair key and what has one go by age, and priority before both.', () =>
      merged(url))
    test('The oldest of the lowest priority is shed, not the last in line; ordering keys stay.', () =>
      shedOldest(url))
    test('What somebody deleted becomes a dead letter, and the others have their turns.', () =>
      deleted(url))
    test('What a script left behind that failed half way is handed out.', () => leftBehind(url))
    test('A version without fair keys finds no queue once there are some.', () => olderVersion(url))
  })
}

const never = { signal }

/** The first letter is the key. */
function shared(ids: string, more: Partial<Envelope> = {}): readonly Envelope[] {
  return ids.split(' ').map((id) => envelope(id, { fairKey: id.slice(0, 1), ...more }))
}

async function assertNothingLeft({ raw, key }: Bench): Promise<void> {
  for (const name of ['fair', 'ids', 'claims', 'scheduled', 'parked', 'heads']) {
    assert.equal(await raw.sendCommand(['EXISTS', key(name)]), 0, name)
  }
  assert.equal(await raw.sendCommand(['XLEN', key('turns')]), 0)
  assert.deepEqual(await raw.sendCommand(['XINFO', 'CONSUMERS', key('turns'), 'millrace']), [])
}

async function nothingLeft(url: string): Promise<void> {
  const bench = await open(url)
  const { transport } = bench
  const from = await subscribeTo(transport)
  await transport.send('q', shared('a1 a2 a3 a4 b1 b2', { priority: 3 }), never)
  await transport.send('q', shared('b3 c1', { fairWeight: 0.3 }), never)
  const all = await takeAll(from)
  assert.deepEqual(idsOf(all), ['a1', 'a2', 'b1', 'a3', 'b2', 'a4', 'b3', 'c1'])
  const [a1, a2, b1, ...rest] = all
  assert.ok(a1 && b1 && a2)
  await from.settle([{ as: 'dead', delivery: a1, errorClass: 'permanent', reason: 'no' }])
  await from.settle([{ as: 'released', delivery: b1, delayMs: 0, counted: true }])
  assert.equal(await transport.browse?.cancel?.('q', 'a2'), true)
  await ackAll(from, rest)
  await transport.shelf?.redrive('q', ['a1'], { actor: 'a', reason: 'r' })
  const again = await takeAll(from)
  assert.deepEqual([...idsOf(again)].sort(), ['a1', 'b1'])
  await ackAll(from, again)
  await transport.send('q', shared('k1 k2', { orderingKey: 'k' }), never)
  await transport.send('q', shared('z1 z2', { delayMs: 60_000 }), never)
  await transport.send('q', shared('y1 y2', { priority: 9 }), never)
  assert.equal(await transport.browse?.purge?.('q'), 6)
  await assertNothingLeft(bench)
}

async function browsed(url: string): Promise<void> {
  const bench = await open(url)
  const { transport, raw, key } = bench
  const { browse } = transport
  assert.ok(browse?.get && browse.cancel)
  const before = Date.now()
  await transport.send('q', shared('a1 a2 a3 b1', { fairWeight: 0.5, priority: 2 }), never)
  const from = await subscribeTo(transport)
  assert.deepEqual(idsOf(await takeAll(from, 1)), ['a1'])
  const found = await browse.get('q', 'a2')
  assert.deepEqual(
    [found?.state, found?.envelope.fairKey, found?.envelope.fairWeight, found?.envelope.priority],
    ['ready', 'a', 0.5, 2],
  )
  assert.ok(found && Math.abs(found.readyAt - before) < 60_000)
  assert.ok(Math.abs(found.sentAt - before) < 60_000)
  assert.equal((await browse.get('q', 'a1'))?.state, 'in flight')
  await raw.sendCommand(['HSET', key('meta'), 'paused', '1'])
  assert.deepEqual(await takeAll(from), [])
  await raw.sendCommand(['HDEL', key('meta'), 'paused'])
  const { depth, inFlight } = await browse.gauge('q')
  assert.deepEqual([depth, inFlight], [3, 1])
  for (const id of ['a1', 'a2']) assert.equal(await browse.cancel('q', id), true)
  assert.equal(await browse.cancel('q', 'a2'), false)
  const rest = await takeAll(from)
  assert.deepEqual(idsOf(rest), ['b1', 'a3'])
  await ackAll(from, rest)
  for (const name of ['fair', 'ids', 'parked']) {
    assert.equal(await raw.sendCommand(['EXISTS', key(name)]), 0, name)
  }
}

async function comesBack(url: string): Promise<void> {
  const bench = await open(url)
  const { transport } = bench
  await transport.send('q', shared('a1 a2 a3 b1'), never)
  const first = await subscribeTo(transport)
  assert.deepEqual(idsOf(await takeAll(first, 3)), ['a1', 'a2', 'b1'])
  await first.close()
  // Behind what waits of its key.
  const second = await subscribeTo(transport, 300)
  const all = await takeAll(second)
  assert.equal(idsOf(all)[0], 'a3')
  assert.deepEqual([...idsOf(all)].sort(), ['a1', 'a2', 'a3', 'b1'])
  assert.ok(all.every(({ history }) => history.counted === 0))
  const [a3, ...others] = all
  assert.ok(a3)
  await second.renew?.(others, 60_000)
  const suspects: Delivery[] = []
  await until('the one that was not renewed', async () => {
    suspects.push(...(await takeAll(second)))
    return suspects.length > 0
  })
  assert.deepEqual(
    suspects.map(({ envelope: { id }, alone }) => [id, alone]),
    [['a3', true]],
  )
  await ackAll(second, [...suspects, ...others])
  await assertNothingLeft(bench)
}

async function merged(url: string): Promise<void> {
  const bench = await open(url)
  const { transport, raw, key } = bench
  const now = async (): Promise<number> => {
    const [seconds, micros] = (await raw.sendCommand(['TIME'])) as readonly string[]
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
  }
  const batches = [
    ...[envelope('p1'), ...shared('a1'), envelope('p2'), ...shared('a2')].map((one) => [one]),
    ...[shared('a3 b1'), [envelope('p3')], shared('c1', { priority: 1 })],
  ]
  for (const batch of batches) {
    await transport.send('q', batch, never)
    const sentAt = await now()
    await until('the next ms', async () => (await now()) > sentAt)
  }
  const from = await subscribeTo(transport)
  const all = await takeAll(from, 4)
  assert.deepEqual(idsOf(all), ['c1', 'p1', 'a1', 'p2'])
  const rest = await takeAll(from)
  // The line of fair keys stands where its oldest stands, and goes by turns.
  assert.deepEqual(idsOf(rest), ['a2', 'b1', 'a3', 'p3'])
  await ackAll(from, [...all, ...rest])
  assert.equal(await raw.sendCommand(['XLEN', key('ready')]), 0)
  await assertNothingLeft(bench)
}

async function shedOldest(url: string): Promise<void> {
  const bench = await open(url)
  const { transport } = bench
  const { shed } = transport
  assert.ok(shed)
  await transport.send('q', shared('k1', { orderingKey: 'k' }), never)
  await transport.send('q', shared('a1 a2'), never)
  await transport.send('q', shared('x1', { priority: 4 }), never)
  const options = { signal, reason: 'no room', upTo: 3 }
  assert.equal(await shed('q', { ...options, max: 1 }), 1)
  assert.equal((await transport.shelf?.get('q', 'a1'))?.envelope.fairKey, 'a')
  assert.equal(await shed('q', { ...options, max: 9 }), 1)
  const from = await subscribeTo(transport)
  const left = await takeAll(from)
  assert.deepEqual(idsOf(left), ['x1', 'k1'])
  await ackAll(from, left)
  await transport.shelf?.redrive('q', ['a1'], { actor: 'a', reason: 'r' })
  await ackAll(from, await takeAll(from))
  await transport.shelf?.discard('q', ['a2'], { actor: 'a', reason: 'r' })
  await assertNothingLeft(bench)
}

async function deleted(url: string): Promise<void> {
  const bench = await open(url)
  const { transport, raw, key } = bench
  await transport.send('q', shared('a1 a2 a3 b1 c1'), never)
  const from = await subscribeTo(transport, 300)
  assert.deepEqual(idsOf(await takeAll(from, 1)), ['a1'])
  await raw.sendCommand(['XTRIM', key('turns'), 'MAXLEN', '0'])
  await raw.sendCommand(['HDEL', key('parked'), 'b1'])
  const places = (await raw.sendCommand(['ZRANGE', key('fair'), '0', '-1'])) as readonly string[]
  await raw.sendCommand(['ZREM', key('fair'), ...places.filter((one) => one.endsWith('c1'))])
  const came: string[] = []
  const letters = async (): Promise<readonly (readonly (string | undefined)[])[]> =>
    Promise.all(
      ['a1', 'b1', 'c1'].map(async (id) => {
        const letter = await transport.shelf?.get('q', id)
        return [id, letter?.reason.slice(0, 9)]
      }),
    )
  await until('the others and the letters', async () => {
    const next = await subscribeTo(transport)
    const some = await takeAll(next)
    came.push(...idsOf(some))
    await ackAll(next, some)
    return (await letters()).every(([, reason]) => reason === 'body lost')
  })
  assert.deepEqual(came, ['a2', 'a3'])
  const { depth, dead } = (await transport.browse?.gauge('q')) ?? {}
  assert.deepEqual([depth, dead], [0, 3])
  assert.equal(await raw.sendCommand(['EXISTS', key('ids')]), 0)
}

async function leftBehind(url: string): Promise<void> {
  const bench = await open(url)
  const { transport, raw, key } = bench
  await transport.send('q', shared('a1'), never)
  const from = await subscribeTo(transport)
  await ackAll(from, await takeAll(from))
  const fields = ['id', 'left', 'body', 'x', 'millrace-fair-key', 'a']
  const entryId = String(await raw.sendCommand(['XADD', key('turns'), '*', ...fields]))
  await raw.sendCommand(['HSET', key('ids'), 'left', `t${entryId}`])
  await until('it comes', async () => {
    const some = await takeAll(from)
    if (some.length === 0) return false
    assert.deepEqual(idsOf(some), ['left'])
    await ackAll(from, some)
    return true
  })
  await assertNothingLeft(bench)
}

async function olderVersion(url: string): Promise<void> {
  const { transport, raw, key } = await open(url)
  const seen = (): Promise<unknown> =>
    raw.sendCommand(['HMGET', key('meta'), 'owner', 'layout', 'keeper', 'fair', 'levels'])
  await transport.send('q', shared('a1', { delayMs: 60_000 }), never)
  assert.deepEqual(await seen(), [null, '3', 'team', '1', null])
  await transport.send('q', [envelope('top', { priority: 1 })], never)
  assert.deepEqual(await seen(), [null, '3', 'team', '1', '2'])
}
