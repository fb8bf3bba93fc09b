import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Admin, crc32c, Producer } from '@platformatic/kafka'
import { startKafka } from '../../scripts/rig/kafka-server.ts'
import { systemClock } from '../../src/model/clock.ts'
import { type Logger, silentLogger } from '../../src/model/logger.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { kafka } from '../../src/transports/kafka/kafka.ts'
import { backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'
import { signal } from './kafka-connect.ts'
import { spoil } from './kafka-spoil.ts'

const skip = backendUrl('kafka') === undefined

/** A broker checks a batch when it takes it, and sends it on as its file has it. So the file is spoiled while it is down. */
test('A batch that cannot be read stops its partition alone, and says so until it is passed over.', {
  skip,
}, async (t: TestContext) => {
  const server = await startKafka()
  t.after(() => server.stop())
  const [node] = server.nodes
  assert.ok(node)
  const said: string[] = []
  const transport = await opened(t, server.brokers, heardBy(said))
  await produce(server.brokers)
  await node.halt('clean')
  spoil(node, 'q-0', 1, (batch) => batch.writeUInt8(batch.readUInt8(70) ^ 0xff, 70))
  spoil(node, 'q-1', 0, (batch) => {
    batch.writeInt16BE(5, 21)
    batch.writeUInt32BE(crc32c(batch.subarray(21)), 17)
  })
  await node.resume()

  const subscription = await subscribed(transport)
  const came = await receive(subscription, 8)
  assert.deepEqual(came.toSorted(), ['0:0', '0:1', '2:0', '2:1', '2:2', '2:3', '2:4', '2:5'])
  await until('both problems', () => transport.problems?.().length === 2)
  const [checksum, codec] = (transport.problems?.() ?? []).toSorted()
  assert.match(
    checksum ?? '',
    /^kafka: partition 0 of topic "q" stands still at offset 2: .*checksum \(CRC\) is wrong.* set group "millrace\.q" to offset 4 /,
  )
  assert.match(codec ?? '', /^kafka: partition 1 of topic "q" stands still at offset 0: .*codec 5/)

  await produce(server.brokers, [0, 1, 2])
  assert.deepEqual(await receive(subscription, 6), ['2:6', '2:7', '2:8', '2:9', '2:10', '2:11'])
  const stops = said.filter((line) => line.includes('stands still'))
  assert.equal(stops.length, 2, stops.join('\n'))

  await subscription.close()
  assert.deepEqual(transport.problems?.(), [])
  await passOver(server.brokers, 0, 4n)
  const next = await subscribed(transport)
  t.after(() => next.close())
  const rest = await receive(next, 2, (place) => place.startsWith('0:'))
  assert.deepEqual(rest.slice(0, 2), ['0:4', '0:5'])
})

async function opened(t: TestContext, brokers: readonly string[], logger: Logger) {
  const connector = kafka({ brokers, partitions: 3, sessionTimeoutMs: 1_500, timeoutMs: 5_000 })
  const clock = systemClock()
  const context = { signal, clock, random: Math.random, logger, migrate: 'auto' } as const
  const transport = await connector.connect(context)
  t.after(() => transport.close())
  await transport.topology.ensure([{ name: 'q', owner: 'o', maxDepth: undefined }], signal)
  return transport
}

function subscribed(transport: Transport): Promise<Subscription> {
  return transport.subscribe('q', { group: 'g', leaseMs: 60_000, maxInFlight: 100 })
}

/** Three batches of two records to each partition. */
async function produce(
  brokers: readonly string[],
  partitions: readonly number[] = [0, 1, 2],
): Promise<void> {
  const producer = new Producer<Buffer, Buffer, Buffer, Buffer>({
    ...{ clientId: 'test', bootstrapBrokers: [...brokers] },
  })
  for (const partition of partitions.flatMap((one) => [one, one, one])) {
    const record = { topic: 'q', partition, value: Buffer.from('"some value"') }
    await producer.send({ messages: [record, { ...record }], acks: -1 })
  }
  await producer.close()
}

/** `partition:offset` of the next ones, those that count. */
async function receive(
  from: Subscription,
  count: number,
  counts: (place: string) => boolean = () => true,
): Promise<readonly string[]> {
  const places: string[] = []
  await until(`${count} messages`, async () => {
    const batch = await from.receive({ max: 100, waitMs: 100, signal })
    places.push(...batch.map(({ lane, position }) => `${lane}:${position}`).filter(counts))
    return places.length >= count
  })
  return places
}

function heardBy(said: string[]): Logger {
  return { ...silentLogger, error: (message) => said.push(message) }
}

/** As `kafka-consumer-groups.sh --reset-offsets` does while nobody works. */
async function passOver(brokers: readonly string[], partition: number, offset: bigint) {
  const admin = new Admin({ clientId: 'test', bootstrapBrokers: [...brokers] })
  const topics = [{ name: 'q', partitionOffsets: [{ partition, offset }] }]
  await admin.alterConsumerGroupOffsets({ groupId: 'millrace.q', topics })
  await admin.close()
}
