import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Delivery, Settled } from '../../src/model/delivery.ts'
import type { Subscription } from '../../src/transport/transport.ts'
import { type Bench, connectTo, envelope, open, signal, subscribeTo } from './redis-bench.ts'
import { NO_REDIS, redisServers, smallestUser } from './redis-servers.ts'

// An ack of many cuts the head off the stream instead of deleting each entry. What stands there besides must stay.

const servers = redisServers()
/** Enough for an ack to cut. */
const MANY = 20

test('Redis is there.', { skip: servers.length > 0 ? false : NO_REDIS }, () => {})

for (const { name, url } of servers) {
  test(`What others hold, and what nobody has had, stays when many are acked (${name}).`, async () => {
    const bench = await filled(url, 3 * MANY)
    const subscription = await subscribeTo(bench.transport)
    const first = await receive(subscription, MANY)
    const second = await receive(subscription, MANY)
    await ack(subscription, second)
    assert.deepEqual(await idsIn(bench), [...numbered(0, MANY), ...numbered(2 * MANY, 3 * MANY)])
    await ack(subscription, first)
    assert.deepEqual(await idsIn(bench), numbered(2 * MANY, 3 * MANY))
    const third = await receive(subscription, MANY)
    await ack(subscription, third.slice(1))
    assert.deepEqual(await idsIn(bench), [`m${2 * MANY}`])
    await ack(subscription, third.slice(0, 1))
    assert.deepEqual(await idsIn(bench), [])
    assert.equal(await bench.raw.sendCommand(['HLEN', bench.key('ids')]), 0)
    await bench.dispose()
  })

  test(`An entry that somebody acked by hand stays when many are acked behind it (${name}).`, async () => {
    const bench = await filled(url, 1 + MANY)
    const subscription = await subscribeTo(bench.transport)
    await receive(subscription, 1)
    const [entry] = await entriesIn(bench)
    await bench.raw.sendCommand(['XACK', bench.key('ready'), 'millrace', String(entry?.[0])])
    await ack(subscription, await receive(subscription, MANY))
    assert.deepEqual(await idsIn(bench), ['m0'])
    await bench.dispose()
  })

  test(`What somebody made the group skip stays when many are acked behind it (${name}).`, async () => {
    const bench = await filled(url, 2 * MANY)
    const subscription = await subscribeTo(bench.transport)
    const entry = (await entriesIn(bench))[MANY - 1]
    const skip = ['XGROUP', 'SETID', bench.key('ready'), 'millrace', String(entry?.[0])]
    await bench.raw.sendCommand(skip)
    await ack(subscription, await receive(subscription, MANY))
    assert.deepEqual(await idsIn(bench), numbered(0, MANY))
    await bench.dispose()
  })

  test(`Many are acked behind one that was cancelled before anybody had it (${name}).`, async () => {
    const bench = await filled(url, 2 * MANY)
    const subscription = await subscribeTo(bench.transport)
    assert.equal(await bench.transport.browse?.cancel?.('q', `m${2 * MANY - 1}`), true)
    await ack(subscription, await receive(subscription, MANY))
    assert.deepEqual(await idsIn(bench), numbered(MANY, 2 * MANY - 1))
    await bench.dispose()
  })

  test(`A user who may not XTRIM acks many all the same (${name}).`, async () => {
    const user = await smallestUser({ name, url }, ['-xtrim'])
    const transport = await connectTo({ ...user.address, prefix: user.prefix })
    await transport.topology.ensure([{ name: 'q', owner: 'team', maxDepth: undefined }], signal)
    const batch = numbered(0, MANY).map((id) => envelope(id))
    await transport.send('q', batch, { signal })
    const subscription = await subscribeTo(transport)
    await ack(subscription, await receive(subscription, MANY))
    const gauge = await transport.browse?.gauge('q')
    assert.deepEqual([gauge?.depth, gauge?.inFlight], [0, 0])
    await transport.close()
    await user.dispose()
  })
}

async function filled(url: string, count: number): Promise<Bench> {
  const bench = await open(url)
  const batch = numbered(0, count).map((id) => envelope(id))
  await bench.transport.send('q', batch, { signal })
  return bench
}

async function receive(from: Subscription, max: number): Promise<readonly Delivery[]> {
  const batch = await from.receive({ max, waitMs: 20_000, signal })
  assert.equal(batch.length, max)
  return batch
}

async function ack(subscription: Subscription, batch: readonly Delivery[]): Promise<void> {
  const outcomes = await subscription.settle(
    batch.map((delivery) => ({ as: 'acked', delivery }) as const),
  )
  assert.deepEqual(new Set<Settled>(outcomes), new Set([{ ok: true }]))
}

async function entriesIn(bench: Bench): Promise<readonly (readonly [string, readonly string[]])[]> {
  const found = await bench.raw.sendCommand(['XRANGE', bench.key('ready'), '-', '+'])
  return found as readonly (readonly [string, readonly string[]])[]
}

async function idsIn(bench: Bench): Promise<readonly (string | undefined)[]> {
  return (await entriesIn(bench)).map(([, fields]) => fields[1])
}

function numbered(from: number, to: number): readonly string[] {
  return Array.from({ length: to - from }, (_, n) => `m${from + n}`)
}
