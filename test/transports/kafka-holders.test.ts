import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { backendUrl } from '../backends.ts'
import { type KafkaHarnessOptions, kafkaHarness } from './kafka-harness.ts'
import { ack, take } from './kafka-taking.ts'
import { until } from './until.ts'

const brokers = backendUrl('kafka')
const { signal } = new AbortController()
/** The next holder waits for the end of the session of one that vanished. */
const LIMIT_MS = 60_000

if (brokers !== undefined)
  describe('kafka, what a holder leaves to the next', () => {
    const harness = (settings: KafkaHarnessOptions['settings'] = {}) => {
      const made = kafkaHarness({ brokers, settings: { deadLetters: 'store', ...settings } })
      after(() => made.dispose())
      return made
    }

    test('Who comes after one that ended all it had is told that nobody had its messages in hand.', async () => {
      const { connect, freshQueue } = harness()
      const transport = await connect()
      const queue = await freshQueue()
      await send(transport, queue, ['a', 'b'])
      const first = await subscribe(transport, queue)
      const came = await take(first, 2, LIMIT_MS)
      assert.deepEqual(handedOut(came), { a: 1, b: 1 })
      await ack(first, came)
      await first.close()
      await send(transport, queue, ['c'])
      assert.deepEqual(handedOut(await take(await subscribe(transport, queue), 1, LIMIT_MS)), {
        c: 1,
      })
    })

    test('Who comes after one that vanished, or closed with something in hand, is told nothing of what that one may have had.', async () => {
      const { connect, freshQueue, vanish } = harness()
      for (const leave of ['vanish', 'close'] as const) {
        const [transport, next] = [await connect(), await connect()]
        const queue = await freshQueue()
        await send(transport, queue, ['a', 'b'])
        const first = await subscribe(transport, queue)
        const [one, other] = await take(first, 2, LIMIT_MS)
        assert.ok(one && other)
        await ack(first, [one])
        if (leave === 'close') await first.close()
        else await vanish?.(transport)
        const second = await subscribe(next, queue)
        const came = await take(second, 1, LIMIT_MS)
        assert.deepEqual(handedOut(came), { b: undefined })
        // What was sent later was in nobody's hands before.
        await send(next, queue, ['c'])
        assert.deepEqual(handedOut(await take(second, 1, LIMIT_MS)), { c: 1 })
      }
    })

    test('A holder that ends before it had all of what a vanished one may have had says nothing of the rest.', async () => {
      const { connect, freshQueue, vanish } = harness()
      const [transport, next] = [await connect(), await connect()]
      const queue = await freshQueue()
      await send(transport, queue, ['a', 'b'])
      await take(await subscribe(transport, queue), 2, LIMIT_MS)
      await vanish?.(transport)
      const second = await subscribe(next, queue)
      const came = await take(second, 1, LIMIT_MS)
      assert.deepEqual(handedOut(came), { a: undefined })
      await ack(second, came)
      await second.close()
      assert.deepEqual(handedOut(await take(await subscribe(next, queue), 1, LIMIT_MS)), {
        b: undefined,
      })
    })

    test('A group that begins at the latest keeps where it began, when its first holder vanishes before it acked anything.', async () => {
      const { connect, freshQueue, vanish } = harness({ startFrom: 'latest' })
      const [transport, next] = [await connect(), await connect()]
      const queue = await freshQueue()
      const first = await subscribe(transport, queue)
      let sent = 0
      let held: readonly Delivery[] = []
      await until('a message in hand', async () => {
        sent += 1
        await send(next, queue, [`m${sent}`])
        held = await first.receive({ max: 1, waitMs: 200, signal })
        return held.length > 0
      })
      await vanish?.(transport)
      const [again] = await take(await subscribe(next, queue), 1, LIMIT_MS)
      assert.equal(again?.envelope.id, held[0]?.envelope.id)
    })
  })

function handedOut(came: readonly Delivery[]): Record<string, number | undefined> {
  return Object.fromEntries(came.map(({ envelope, deliveries }) => [envelope.id, deliveries]))
}

function subscribe(transport: Transport, queue: string): Promise<Subscription> {
  return transport.subscribe(queue, { group: 'g', leaseMs: 1_000, maxInFlight: 10 })
}

async function send(transport: Transport, queue: string, ids: readonly string[]): Promise<void> {
  const envelopes = ids.map((id) => ({ id, body: Buffer.from('x'), headers: {}, priority: 0 }))
  const outcomes = await transport.send(queue, envelopes, { signal })
  assert.ok(outcomes.every(({ ok }) => ok))
}
