import assert from 'node:assert/strict'
import { test } from 'node:test'
import { virtualClock } from 'millrace/testing'
import { WAITING_MAX } from '../../src/layers/held-lane.ts'
import { hold } from '../../src/layers/hold.ts'
import { settleEach } from '../../src/layers/settle-each.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { read } from '../source-files.ts'
import { memoryLog } from './memory-log.ts'

const signal = new AbortController().signal
const BATCH = 30

/** A lane with so many messages of one key, and how many of them its consumer has taken out of the log. */
async function oneKey(count: number) {
  const time = virtualClock()
  const seen = { taken: 0 }
  const log = memoryLog(time, 1).connect()
  const counting: Transport = {
    ...log,
    subscribe: async (...given) => {
      const inner = await log.subscribe(...given)
      return {
        ...inner,
        receive: async (options) => {
          const came = await inner.receive(options)
          seen.taken += came.length
          return came
        },
      }
    },
  }
  const transport = hold(settleEach(counting), time)
  await transport.topology.ensure([{ name: 'q', owner: 'o', maxDepth: undefined }], signal)
  const body = new Uint8Array()
  const batch = Array.from({ length: count }, (_, n) => ({
    ...{ id: `${n}`, orderingKey: 'a', headers: {}, priority: 0, body },
  }))
  await transport.send('q', batch, { signal })
  const from = await transport.subscribe('q', { group: 'g', leaseMs: 1_000, maxInFlight: 10_000 })
  return { time, seen, from }
}

const receive = (from: Subscription): Promise<readonly Delivery[]> =>
  from.receive({ max: BATCH, waitMs: 0, signal })

/** Asks as often as the whole log would need. */
async function askedOften(from: Subscription): Promise<readonly Delivery[]> {
  const all: Delivery[] = []
  for (let times = 0; times < 50; times++) all.push(...(await receive(from)))
  return all
}

test('Behind the head of a key wait a hundred of a lane and the rest of one receive, as the guide says; then nothing more is taken.', async () => {
  const { seen, from } = await oneKey(500)
  assert.ok(read('docs/guide/order.md').includes(`${WAITING_MAX} of a partition`))
  let [head] = await askedOften(from)
  const waiting = (): number => seen.taken - 1
  assert.ok(waiting() >= WAITING_MAX && waiting() < WAITING_MAX + BATCH, `${waiting()} wait`)
  for (let n = 0; n < 500; n++) {
    assert.equal(head?.envelope.id, `${n}`)
    await from.settle([{ as: 'acked', delivery: head }])
    head = (await receive(from))[0]
    assert.ok(seen.taken - n < WAITING_MAX + 2 * BATCH, `${seen.taken} taken after ${n}`)
  }
  assert.equal(seen.taken, 500)
  await from.close()
})

test('From the first failure on nothing more is taken of its lane until it has ended.', async () => {
  const { time, seen, from } = await oneKey(500)
  const [head] = await receive(from)
  assert.ok(head)
  assert.equal(seen.taken, BATCH)
  await from.settle([{ as: 'released', delivery: head, delayMs: 60_000, counted: false }])
  assert.deepEqual(await askedOften(from), [])
  assert.equal(seen.taken, BATCH)
  await time.advance(60_000)
  const [again] = await receive(from)
  assert.equal(again?.envelope.id, '0')
  await from.settle([{ as: 'acked', delivery: again }])
  await askedOften(from)
  assert.ok(seen.taken > BATCH)
  await from.close()
})
