import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Admin, Producer } from '@platformatic/kafka'
import { createMillrace, defineQueue } from 'millrace'
import { kafka } from 'millrace/kafka'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { systemClock } from '../../src/model/clock.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import type { KafkaSettings } from '../../src/transports/kafka/options.ts'
import { backendUrl } from '../backends.ts'
import { quick } from './kafka-harness.ts'
import { until } from './until.ts'

const found = backendUrl('kafka')
const { signal } = new AbortController()
const prefix = `details-${Date.now().toString(36)}-`

if (found !== undefined)
  describe('kafka, beyond the kit', () => {
    const brokers = found.split(',')
    const client = { clientId: 'test', bootstrapBrokers: brokers }
    const admin = new Admin(client)
    const producer = new Producer<Buffer, Buffer, Buffer, Buffer>(client)
    const open: Transport[] = []
    after(async () => {
      await Promise.all([...open, admin, producer].map((one) => one.close()))
    })
    const connect = async (settings: KafkaSettings = {}): Promise<Transport> => {
      const connector = kafka({ brokers, prefix, partitions: 1, ...quick, ...settings })
      const context = { signal, clock: systemClock(), random: Math.random, logger: silentLogger }
      const transport = await connector.connect({ ...context, migrate: 'auto' })
      open.push(transport)
      return transport
    }
    const ensure = (transport: Transport, name: string): Promise<void> =>
      transport.topology.ensure([{ name, owner: 'o', maxDepth: undefined }], signal)

    test("A foreign producer's bare record has its place as id and its key as ordering key.", async () => {
      const transport = await connect()
      await ensure(transport, 'foreign')
      const value = Buffer.from('not even JSON')
      const record = { topic: `${prefix}foreign`, key: Buffer.from('customer-7'), value }
      await producer.send({ messages: [record], acks: -1 })
      const { topics } = await admin.metadata({ topics: [record.topic] })
      const delivery = await one(await subscribe(transport, 'foreign'))
      assert.equal(delivery.envelope.id, `${topics.get(record.topic)?.id}:0:0`)
      assert.equal(delivery.envelope.orderingKey, 'customer-7')
      assert.equal(Buffer.compare(delivery.envelope.body, value), 0)
      assert.deepEqual(delivery.envelope.headers, {})
    })

    test('A topic that would lose messages is refused with all its differences, and left as it is.', async () => {
      const topic = `${prefix}compact`
      const configs = [
        { name: 'cleanup.policy', value: 'compact' },
        { name: 'retention.bytes', value: '1000' },
      ]
      await admin.createTopics({ topics: [topic], partitions: 1, replicas: 1, configs })
      const transport = await connect()
      await assert.rejects(ensure(transport, 'compact'), (error: Error) => {
        return ['cleanup.policy is compact', 'retention.bytes is 1000'].every((part) =>
          error.message.includes(part),
        )
      })
      await ensure(await connect({ topology: 'none' }), 'compact')
    })

    test('Check makes no topic, and says which one is missing.', async () => {
      const transport = await connect({ topology: 'check' })
      await assert.rejects(ensure(transport, 'missing'), /missing" does not exist/)
      assert.equal((await admin.listTopics()).includes(`${prefix}missing`), false)
    })

    test('A group that begins at the latest leaves out what was sent before it.', async () => {
      const transport = await connect({ startFrom: 'latest' })
      await ensure(transport, 'late')
      const message = (id: string) => ({ id, body: Buffer.from('x'), headers: {}, priority: 0 })
      await transport.send('late', [message('before')], { signal })
      const subscription = await subscribe(transport, 'late')
      let seen: string | undefined
      await until('a message', async () => {
        await transport.send('late', [message('after')], { signal })
        const [first] = await subscription.receive({ max: 1, waitMs: 200, signal })
        seen = first?.envelope.id
        return seen !== undefined
      })
      assert.equal(seen, 'after')
    })
  })

if (found !== undefined)
  test('An app on kafka without retry and store, and with a topic that differs, is told of all at once, and nothing is made.', async (t) => {
    const brokers = found.split(',')
    const admin = new Admin({ clientId: 'test', bootstrapBrokers: brokers })
    t.after(() => admin.close())
    const configs = [{ name: 'retention.bytes', value: '1000' }]
    await admin.createTopics({ topics: [`${prefix}short`], partitions: 1, replicas: 1, configs })
    const queues = ['short', 'absent'].map((name) =>
      defineQueue({ name, owner: 'o', payload: z.string() }),
    )
    const app = createMillrace({ transport: kafka({ brokers, prefix }), queues })
    await assert.rejects(app, (error: Error) => {
      const parts = ["retry: 'hold'", 'store: kafka', 'retention.bytes is 1000']
      assert.ok(!error.message.includes('absent'), error.message)
      return parts.every((part) => error.message.includes(part))
    })
    const made = (await admin.listTopics()).filter((name) => name.startsWith(prefix))
    assert.ok(!made.some((name) => name.includes('absent')), String(made))
  })

if (found !== undefined)
  test('With topology: none each queue has a fact that says so.', async (t) => {
    const connector = kafka({ brokers: found.split(','), prefix, topology: 'none' })
    const context = { signal, clock: systemClock(), random: Math.random, logger: silentLogger }
    const transport = await connector.connect({ ...context, migrate: 'auto' })
    t.after(() => transport.close())
    const names = ['one', 'two']
    const specs = names.map((name) => ({ name, owner: 'o', maxDepth: undefined }))
    await transport.topology.ensure(specs, signal)
    assert.deepEqual(
      transport.facts,
      names.map(
        (name) => `topic "${prefix}${name}": topology is none, so nothing of it is checked`,
      ),
    )
  })

if (found !== undefined)
  test('A topic that this cluster cannot make is refused with the word of the broker.', async () => {
    const queue = defineQueue({ name: 'wide', owner: 'o', payload: z.string() })
    const transport = kafka({ brokers: found.split(','), prefix, retry: 'park', replicas: 3 })
    await assert.rejects(createMillrace({ transport, store: memoryStore(), queues: [queue] }), {
      code: 'MILLRACE_INVALID_OPTIONS',
      message:
        /^kafka: topic ".*wide" cannot be made with 12 partitions and 3 replicas \(INVALID_REPLICATION_FACTOR: /,
    })
  })

function subscribe(transport: Transport, queue: string): Promise<Subscription> {
  return transport.subscribe(queue, { group: 'g', leaseMs: 1_000, maxInFlight: 10 })
}

async function one(subscription: Subscription): Promise<Delivery> {
  let delivery: Delivery | undefined
  await until('a delivery', async () => {
    delivery = (await subscription.receive({ max: 1, waitMs: 200, signal }))[0]
    return delivery !== undefined
  })
  assert.ok(delivery)
  return delivery
}
