import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Sent } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { type Bench, envelope, open, signal, subscribeTo } from './redis-bench.ts'
import { NO_REDIS, redisServers } from './redis-servers.ts'

// Messages of an id and a body go by a script of their own. It must decide as the one for all others does.

const servers = redisServers()

test('Redis is there.', { skip: servers.length > 0 ? false : NO_REDIS }, () => {})

/** Takes the other script, and means the same. */
const more = { headers: { h: 'v' } }

for (const { name, url } of servers) {
  test(`Known ids, the shelf's and those of the same batch are duplicates, whatever else the batch has (${name}).`, async () => {
    const outcomes = await onBoth(url, 10, async ({ transport }, send) => {
      await send(['a', 'dies'])
      const subscription = await subscribeTo(transport)
      const batch = await subscription.receive({ max: 2, waitMs: 20_000, signal })
      const dies = batch.find((delivery) => delivery.envelope.id === 'dies')
      assert.ok(dies)
      const death = { as: 'dead', delivery: dies, reason: 'r', errorClass: 'permanent' } as const
      assert.deepEqual(await subscription.settle([death]), [{ ok: true }])
      return [await send(['a', 'b', 'dies', 'b', 'c']), await send(['c', 'd'], true)]
    })
    const are = outcomes.map((sent) => sent.map((one) => one.ok && one.duplicate))
    assert.deepEqual(are, [
      [true, false, true, true, false],
      [true, false],
    ])
  })

  test(`A full queue takes what there is room for, and of an atomic batch nothing (${name}).`, async () => {
    const outcomes = await onBoth(url, 3, async (_bench, send) => [
      await send(['a', 'b']),
      await send(['c', 'd'], true),
      await send(['a', 'c', 'd']),
    ])
    const are = outcomes.map((sent) => sent.map((one) => (one.ok ? one.duplicate : one.fault.code)))
    assert.deepEqual(are, [
      [false, false],
      ['full', 'full'],
      [true, false, 'full'],
    ])
  })

  test(`A body arrives as it was sent, text or not, short or long (${name}).`, async () => {
    const bench = await open(url)
    const bodies = [
      Buffer.from('{"n":"é 🙂 \u0000 \ufeff"}'),
      Buffer.from('\ufeffwith a mark'),
      Buffer.from([0xff, 0xfe, 0x00, 0x80]),
      Buffer.alloc(0),
      Buffer.alloc(10_000, 'x'),
    ]
    const batch = bodies.map((body, n) => envelope(`m${n}`, { body }))
    await bench.transport.send('q', batch, { signal })
    const subscription = await subscribeTo(bench.transport)
    const came = await subscription.receive({ max: 10, waitMs: 20_000, signal })
    assert.deepEqual(
      came.map((delivery) => Buffer.from(delivery.envelope.body)),
      bodies,
    )
    await bench.dispose()
  })
}

type Send = (ids: readonly string[], atomic?: boolean) => Promise<readonly Sent[]>

/** The outcomes of one and the same story by either script; they must be equal. */
async function onBoth(
  url: string,
  maxDepth: number,
  story: (bench: Bench, send: Send) => Promise<readonly (readonly Sent[])[]>,
): Promise<readonly (readonly Sent[])[]> {
  const told = async (extra: Partial<Envelope>): Promise<readonly (readonly Sent[])[]> => {
    const bench = await open(url, { maxDepth })
    const outcomes = await story(bench, sendTo(bench.transport, extra))
    await bench.dispose()
    return outcomes
  }
  const plain = await told({})
  assert.deepEqual(await told(more), plain)
  return plain
}

function sendTo(transport: Transport, extra: Partial<Envelope>): Send {
  return (ids, atomic = false) =>
    transport.send(
      'q',
      ids.map((id) => envelope(id, extra)),
      { signal, atomic },
    )
}
