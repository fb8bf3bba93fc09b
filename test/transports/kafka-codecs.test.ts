import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as client from '@platformatic/kafka'
import { systemClock } from '../../src/model/clock.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { fetchOf } from '../../src/transports/kafka/fetch-answer.ts'
import { kafka } from '../../src/transports/kafka/kafka.ts'
import { backendUrl } from '../backends.ts'
import { quick } from './kafka-harness.ts'
import { until } from './until.ts'

const found = backendUrl('kafka')
const { signal } = new AbortController()
const prefix = `codecs-${Date.now().toString(36)}-`
const bootstrapBrokers = found?.split(',') ?? []
const CODECS = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 } as const

for (const compression of ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const)
  test(`What is sent with compression ${compression} lies so in the topic, and is read.`, {
    skip: found === undefined,
  }, async (t) => {
    const settings = { prefix, partitions: 1, ...quick, compression, deadLetters: 'store' } as const
    const connector = kafka({ brokers: bootstrapBrokers, ...settings })
    const context = { signal, clock: systemClock(), random: Math.random, logger: silentLogger }
    const transport = await connector.connect({ ...context, migrate: 'auto' })
    t.after(() => transport.close())
    const spec = { name: compression, owner: 'o', maxDepth: undefined }
    await transport.topology.ensure([spec], signal)
    const body = Buffer.alloc(10_000, compression)
    const envelope = { id: compression, body, headers: {}, priority: 0 }
    const [sent] = await transport.send(compression, [envelope], { signal })
    assert.equal(sent?.ok, true)
    assert.equal(await storedCodec(`${prefix}${compression}`), CODECS[compression])
    const options = { group: 'g', leaseMs: 1_000, maxInFlight: 10 }
    const subscription = await transport.subscribe(compression, options)
    let came: Delivery | undefined
    await until('a delivery', async () => {
      came = (await subscription.receive({ max: 1, waitMs: 200, signal }))[0]
      return came !== undefined
    })
    assert.equal(Buffer.compare(came?.envelope.body ?? Buffer.alloc(0), body), 0)
  })

/** Of a record batch (https://kafka.apache.org/documentation/#recordbatch). */
const ATTRIBUTES_AT = 21
const CODEC_BITS = 0b111

/** What the first batch of a topic says of itself, as its broker has it. */
async function storedCodec(topic: string): Promise<number> {
  const reader = new client.Producer({ clientId: 'test', bootstrapBrokers })
  try {
    const { brokers, topics } = await reader.metadata({ topics: [topic] })
    const known = topics.get(topic)
    const leader = brokers.get(known?.partitions[0]?.leader ?? -1)
    assert.ok(known !== undefined && leader !== undefined)
    const connection = await reader.connections.get(leader)
    const place = { partition: 0, currentLeaderEpoch: -1, fetchOffset: 0n, lastFetchedEpoch: -1 }
    const partitions = [{ ...place, partitionMaxBytes: 1_000_000 }]
    const asked = [{ topicId: known.id, partitions }]
    const { async: fetch } = fetchOf(client)
    const answer = await fetch(connection, 500, 1, 1_000_000, 0, 0, -1, asked, [], '')
    const records = answer.partitions[0]?.records
    assert.ok(records !== undefined && records.length > ATTRIBUTES_AT + 2)
    return records.readInt16BE(ATTRIBUTES_AT) & CODEC_BITS
  } finally {
    await reader.close()
  }
}
