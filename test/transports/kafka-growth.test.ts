import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Admin } from '@platformatic/kafka'
import { type KafkaSettings, kafka } from 'millrace/kafka'
import { settleEach } from '../../src/layers/settle-each.ts'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { backendUrl } from '../backends.ts'
import { quick } from './kafka-harness.ts'
import { ack, ensure, send, subscribe, take } from './kafka-taking.ts'
import { until } from './until.ts'

const found = backendUrl('kafka')
const skip = found === undefined
const { signal } = new AbortController()
const prefix = `growth-${Date.now().toString(36)}-`
/** Nobody looks during a test. */
const NEVER = { metadataMaxAgeMs: 3_600_000 } as const
/** As ordering keys they lie in each of four partitions. */
const KEYS = Array.from({ length: 40 }, (_, n) => `key-${n}`)

test('Partitions that are added under a running group are read within metadataMaxAgeMs, from their first message, by a group of latest, too.', {
  skip,
}, async (t) => {
  const { connect, grow, begun, sent } = scene(t)
  const transport = await connect({ metadataMaxAgeMs: 1_000 })
  const subscription = await begun(transport, 'running')
  await grow('running', 4)
  await sent('running')
  await allOf(subscription)
  await subscription.close()
})

test('What was added is remembered by who stays, when the leader of the group goes.', {
  skip,
}, async (t) => {
  const { connect, grow, begun, joined, sent } = scene(t)
  const transport = await connect(NEVER)
  const leader = await begun(transport, 'heir')
  const other = await subscribe(transport, 'heir')
  await joined('heir', 2)
  await grow('heir', 4)
  await sent('heir')
  await leader.close()
  await allOf(other)
  await other.close()
})

test('Partitions that were added while nobody ran are read from their first message, and what a group of latest found is left alone.', {
  skip,
}, async (t) => {
  const { connect, grow, begun, sent } = scene(t)
  const transport = await connect(NEVER)
  await ensure(transport, 'stopped')
  await sent('stopped', ['earlier'])
  const first = await begun(transport, 'stopped')
  await first.close()
  await grow('stopped', 4)
  await sent('stopped')
  const next = await subscribe(await connect(NEVER), 'stopped')
  await allOf(next)
  await next.close()
})

/** Groups that begin at the end of topics with two partitions. */
function scene(t: TestContext) {
  const brokers = found?.split(',') ?? []
  const admin = new Admin({ clientId: 'test', bootstrapBrokers: brokers })
  const open: Transport[] = []
  const connect = async (settings: KafkaSettings): Promise<Transport> => {
    const base = { brokers, prefix, partitions: 2, ...quick, startFrom: 'latest' } as const
    const connector = kafka({ ...base, deadLetters: 'store', ...settings })
    const { random } = Math
    const context = {
      signal,
      clock: systemClock(),
      random,
      logger: process.env.DBG ? console : silentLogger,
    } as const
    const transport = await connector.connect({ ...context, migrate: 'auto' })
    open.push(transport)
    return settleEach(transport)
  }
  const committed = async (queue: string): Promise<number> => {
    const groups = [{ groupId: `millrace.${prefix}${queue}` }]
    const [group] = await admin.listConsumerGroupOffsets({ groups, requireStable: true })
    return (group?.topics[0]?.partitions ?? []).filter((one) => one.committedOffset >= 0n).length
  }
  const begun = async (transport: Transport, queue: string): Promise<Subscription> => {
    await ensure(transport, queue)
    const subscription = await subscribe(transport, queue)
    await until('where it begins', async () => (await committed(queue)) === 2)
    return subscription
  }
  const joined = async (queue: string, count: number): Promise<void> => {
    const group = `millrace.${prefix}${queue}`
    await until(`${count} members`, async () => {
      const found = (await admin.describeGroups({ groups: [group] })).get(group)
      return /^stable$/i.test(found?.state ?? '') && found?.members.size === count
    })
  }
  const grow = async (queue: string, count: number): Promise<void> => {
    const { brokers: known } = await admin.metadata({ topics: [] })
    const assignments = Array.from({ length: count - 2 }, () => ({
      brokerIds: [...known.keys()].slice(0, 1),
    }))
    const topics = [{ name: `${prefix}${queue}`, count, assignments }]
    await admin.createPartitions({ topics, validateOnly: false })
  }
  // A sender that has just come knows all partitions.
  const sent = async (queue: string, keys: readonly string[] = KEYS): Promise<void> =>
    send(await connect(NEVER), queue, keys)
  t.after(() => Promise.all([...open, admin].map((one) => one.close())))
  return { connect, grow, begun, joined, sent }
}

/** Everything that was sent after the group had begun, and nothing else. */
async function allOf(from: Subscription): Promise<void> {
  const taken = await take(from, KEYS.length)
  await ack(from, taken)
  assert.deepEqual(taken.map(({ envelope }) => envelope.id).toSorted(), KEYS.toSorted())
  assert.deepEqual(await from.receive({ max: 1, waitMs: 300, signal }), [])
}
