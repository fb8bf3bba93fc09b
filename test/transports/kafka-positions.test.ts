import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Admin } from '@platformatic/kafka'
import { kafka } from 'millrace/kafka'
import { settleEach } from '../../src/layers/settle-each.ts'
import { systemClock } from '../../src/model/clock.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { type Logger, silentLogger } from '../../src/model/logger.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { backendUrl } from '../backends.ts'
import { quick } from './kafka-harness.ts'
import { ack, ensure, send, subscribe, take } from './kafka-taking.ts'
import { until } from './until.ts'

const found = backendUrl('kafka')
const skip = found === undefined
const { signal } = new AbortController()
const prefix = `positions-${Date.now().toString(36)}-`
const HOUR_MS = 3_600_000
/** As ordering keys; of two partitions these two lie in different ones. */
const OTHER_PARTITIONS = ['a', 'd']

test('All of a topic that was made anew under a stopped consumer is handled, when its group stands beyond its end.', {
  skip,
}, async (t) => {
  const { admin, connect, committed, begun, saidOf, pass } = scene(t)
  const transport = await connect()
  const { subscription, inHand } = await begun(transport, 'stopped', ['old-1', 'old-2'])
  await ack(subscription, inHand)
  await subscription.close()
  await makeAnew(admin, transport, 'stopped')
  await send(transport, 'stopped', ['a', 'b', 'c'])
  const partitionOffsets = [{ partition: 0, offset: 1_000n }]
  const topics = [{ name: `${prefix}stopped`, partitionOffsets }]
  await admin.alterConsumerGroupOffsets({ groupId: `millrace.${prefix}stopped`, topics })

  const next = await subscribe(transport, 'stopped')
  const came = await take(next, 3)
  assert.deepEqual(idsOf(came), ['a', 'b', 'c'])
  const problem = `kafka: partition 0 of topic "${prefix}stopped" ends at offset 3, and was read up to 1000: it was made anew, or has lost its newest messages (unclean election); all that it keeps is read again, from offset 0`
  assert.deepEqual(saidOf('stopped'), [problem])
  assert.deepEqual(transport.problems?.(), [problem])
  pass(HOUR_MS)
  const later = transport.problems?.()
  pass(-HOUR_MS)
  assert.deepEqual(later, [])
  await ack(next, came)
  assert.equal(await committed('stopped'), 3n)
  await next.close()
})

for (const [name, count] of [
  ['shorter', 3],
  ['longer', 9],
] as const)
  test(`All of a topic that was made anew under a consumer is handled, when it is ${name} than what was read.`, {
    skip,
  }, async (t) => {
    const { admin, connect, committed, begun, saidOf } = scene(t)
    const transport = await connect()
    const old = Array.from({ length: 5 }, (_, n) => `old-${n}`)
    const { subscription, inHand } = await begun(transport, name, old)
    // The first one holds the position, and what is done beyond it is known: none of it is about the new topic.
    await ack(subscription, inHand.slice(1))
    subscription.pauseLane?.('0', true)
    const ids = Array.from({ length: count }, (_, n) => `new-${n}`)
    await makeAnew(admin, transport, name)
    await send(transport, name, ids)
    subscription.pauseLane?.('0', false)
    const came = await take(subscription, count)
    assert.deepEqual(idsOf(came), ids)
    assert.ok(inHand.every(({ claim }) => claim.lost.aborted))
    await ack(subscription, came)
    assert.equal(await committed(name), BigInt(count))
    assert.match(saidOf(name).join('\n'), /^kafka: partition 0 of topic ".*" (was|ends) .*$/)
    await subscription.close()
  })

test('What was deleted unread is an error that says how much, and work goes on with what is kept.', {
  skip,
}, async (t) => {
  const { admin, connect, committed, begun, saidOf } = scene(t)
  const transport = await connect()
  const ids = ['0', '1', '2', '3', '4', '5']
  const { subscription, inHand } = await begun(transport, 'deleted', ids)
  await ack(subscription, inHand.slice(0, 1))
  await subscription.close()
  const partitions = [{ partition: 0, offset: 4n }]
  await admin.deleteRecords({ topics: [{ name: `${prefix}deleted`, partitions }] })
  const next = await subscribe(transport, 'deleted')
  const came = await take(next, 2)
  assert.deepEqual(idsOf(came), ['4', '5'])
  const problem = `kafka: partition 0 of topic "${prefix}deleted" begins at offset 4 now, and was read up to 1: 3 offsets were deleted unread, by retention or by hand, and what was there is lost; give the topic a longer retention.ms, or the queue more workers`
  assert.deepEqual(saidOf('deleted'), [problem])
  assert.deepEqual(transport.problems?.(), [problem])
  await ack(next, came)
  assert.equal(await committed('deleted'), 6n)
  await next.close()
})

for (const [name, before, then] of [
  ['more', 1, 2],
  ['fewer', 2, 1],
] as const)
  test(`All of a topic that was made anew under a consumer is handled, when it has ${name} partitions.`, {
    skip,
  }, async (t) => {
    const { admin, connect, begun } = scene(t)
    // A partition of which the group has committed nothing begins where `startFrom` says.
    const first = await connect(before, 'earliest')
    const { subscription, inHand } = await begun(first, name, OTHER_PARTITIONS)
    await ack(subscription, inHand)
    const transport = await connect(then, 'earliest')
    await makeAnew(admin, transport, name)
    await send(transport, name, OTHER_PARTITIONS)
    const came = await take(subscription, OTHER_PARTITIONS.length)
    assert.deepEqual(idsOf(came).toSorted(), OTHER_PARTITIONS)
    await ack(subscription, came)
    await subscription.close()
    // All is committed: whoever comes next begins behind it.
    await send(transport, name, ['next'])
    const next = await subscribe(transport, name)
    assert.deepEqual(idsOf(await take(next, 1)), ['next'])
    await next.close()
  })

test('A transport that begins at the latest says for how long the broker keeps the positions of a group.', {
  skip,
}, async (t) => {
  const { connect } = scene(t)
  const transport = await connect()
  await ensure(transport, 'facts')
  const [, fact] = transport.facts ?? []
  assert.match(
    fact ?? '',
    /^startFrom is latest: .*offsets\.retention\.minutes, 7 days\) begins at/,
  )
  const earliest = await connect(1, 'earliest')
  await ensure(earliest, 'facts')
  assert.equal(earliest.facts?.length, 1)
})

/** A group on topics with one partition, and what was said of it. */
function scene(t: TestContext) {
  const brokers = found?.split(',') ?? []
  const admin = new Admin({ clientId: 'test', bootstrapBrokers: brokers })
  const open: Transport[] = []
  const said: string[] = []
  const logger: Logger = { ...silentLogger, error: (line) => void said.push(line) }
  const system = systemClock()
  let laterMs = 0
  const clock = { ...system, now: () => system.now() + laterMs }
  // `latest` is about a group that never began: it must skip nothing of one that has.
  const connect = async (
    partitions = 1,
    startFrom: 'earliest' | 'latest' = 'latest',
  ): Promise<Transport> => {
    const settings = { brokers, prefix, partitions, ...quick, startFrom } as const
    const connector = kafka({ ...settings, deadLetters: 'store' })
    const context = { signal, clock, random: Math.random, logger, migrate: 'auto' } as const
    const transport = await connector.connect(context)
    open.push(transport)
    return settleEach(transport)
  }
  const committed = async (queue: string): Promise<bigint | undefined> => {
    const groups = [{ groupId: `millrace.${prefix}${queue}` }]
    const [group] = await admin.listConsumerGroupOffsets({ groups, requireStable: true })
    return group?.topics[0]?.partitions[0]?.committedOffset
  }
  /** A group that has begun, with all of these in hand. */
  const begun = async (transport: Transport, queue: string, ids: readonly string[]) => {
    await ensure(transport, queue)
    const subscription = await subscribe(transport, queue)
    await until('where it begins', async () => (await committed(queue)) === 0n)
    await send(transport, queue, ids)
    return { subscription, inHand: await take(subscription, ids.length) }
  }
  const saidOf = (queue: string): readonly string[] =>
    said.filter((line) => line.includes(`topic "${prefix}${queue}"`))
  t.after(() => Promise.all([...open, admin].map((one) => one.close())))
  return {
    ...{ admin, connect, committed, begun, saidOf },
    pass: (ms: number) => {
      laterMs += ms
    },
  }
}

async function makeAnew(admin: Admin, transport: Transport, queue: string): Promise<void> {
  const topic = `${prefix}${queue}`
  await admin.deleteTopics({ topics: [topic] })
  await until('no topic', async () => !(await admin.listTopics()).includes(topic))
  await ensure(transport, queue)
}

function idsOf(came: readonly Delivery[]): readonly string[] {
  return came.map(({ envelope }) => envelope.id)
}
