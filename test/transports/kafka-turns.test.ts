import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backendUrl } from '../backends.ts'
import { kafkaHarness } from './kafka-harness.ts'
import { until } from './until.ts'

const brokers = backendUrl('kafka')
const { signal } = new AbortController()
const EACH = 600
const BATCH = 100

if (brokers !== undefined)
  test('Partitions of Kafka take turns, also while the first one has more than is asked for.', async (t) => {
    const { connect, freshQueue, dispose } = kafkaHarness({
      brokers,
      settings: { partitions: 2, deadLetters: 'store' },
    })
    t.after(() => dispose())
    const transport = await connect()
    const queue = await freshQueue()
    // These two keys lie in different partitions.
    for (const orderingKey of ['a', 'd']) {
      const envelopes = Array.from({ length: EACH }, (_, n) => ({
        ...{ id: `${orderingKey}${n}`, body: Buffer.from('x'), headers: {}, priority: 0 },
        orderingKey,
      }))
      const outcomes = await transport.send(queue, envelopes, { signal })
      assert.ok(outcomes.every(({ ok }) => ok))
    }
    const options = { group: 'g', leaseMs: 1_000, maxInFlight: 10 }
    const subscription = await transport.subscribe(queue, options)
    const lanes: string[] = []
    await until('less than one of them has', async () => {
      const batch = await subscription.receive({ max: BATCH, waitMs: 200, signal })
      lanes.push(...batch.map(({ lane = '' }) => lane))
      return lanes.length >= EACH - BATCH
    })
    assert.deepEqual([...new Set(lanes)].toSorted(), ['0', '1'])
  })
