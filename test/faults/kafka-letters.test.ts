import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import * as client from '@platformatic/kafka'
import { type KafkaServer, startKafka } from '../../scripts/rig/kafka-server.ts'
import { systemClock } from '../../src/model/clock.ts'
import type { DeadLetter } from '../../src/model/dead-letter.ts'
import { freshHistory } from '../../src/model/history.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { StoredShelf } from '../../src/transport/stored-shelf.ts'
import { readBatches } from '../../src/transports/kafka/batches.ts'
import { kafka } from '../../src/transports/kafka/kafka.ts'
import { backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'
import { signal } from './kafka-connect.ts'

const skip = backendUrl('kafka') === undefined
const NOTE = { actor: 'somebody', reason: 'because' }
const TOPIC = 'q.dead'

test('Dead letters, and who removed which, outlive compaction and a broker that is killed.', {
  skip,
}, async (t: TestContext) => {
  const server = await startKafka({ config: ['log.cleaner.backoff.ms=200'] })
  t.after(() => server.stop())
  const [node] = server.nodes
  assert.ok(node)
  await makeTopic(server.brokers)
  const before = await lettersOf(t, server.brokers)
  await before.put(Array.from({ length: 20 }, (_, n) => letter(`m${n}`)))
  const gone = Array.from({ length: 15 }, (_, n) => `m${n}`)
  assert.equal((await before.discard('q', gone, NOTE)).length, 15)
  const left = ['m15', 'm16', 'm17', 'm18', 'm19']
  // Segments are closed by what comes later.
  await until(
    'a compaction that left out what was removed',
    async () => {
      await before.put([letter('tick')])
      await sleep(300)
      return keysIn(node).every((key) => !gone.some((id) => key.startsWith(`${id} `)))
    },
    60_000,
  )
  for (const how of ['compacted', 'killed'] as const) {
    if (how === 'killed') {
      await before.put([letter('last')])
      await node.restart('crash')
    }
    for (const shelf of [before, await lettersOf(t, server.brokers)]) {
      const { items } = await shelf.list('q', { limit: 100 })
      const more = how === 'killed' ? ['last', 'tick'] : ['tick']
      assert.deepEqual(idsOf(items), [...more, ...left].toSorted(), how)
      assert.ok(items.every(({ envelope: { id, body } }) => Buffer.from(body).toString() === id))
      assert.equal((await shelf.audit('q', 100)).length, 15, how)
      assert.equal(await shelf.get('q', 'm3'), undefined)
    }
  }
})

function letter(id: string): Omit<DeadLetter, 'deadAt'> {
  return {
    envelope: { id, body: Buffer.from(id), headers: {}, priority: 0 },
    ...{ queue: 'q', owner: 'o', errorClass: 'permanent', reason: 'r', sentAt: 1 },
    history: freshHistory,
  }
}

function idsOf(letters: readonly DeadLetter[]): readonly string[] {
  return letters.map(({ envelope }) => envelope.id).toSorted()
}

async function lettersOf(t: TestContext, brokers: readonly string[]): Promise<StoredShelf> {
  const context = { signal, clock: systemClock(), random: Math.random, logger: silentLogger }
  const transport = await kafka({ brokers }).connect({ ...context, migrate: 'auto' })
  t.after(() => transport.close())
  assert.ok(transport.letters)
  return transport.letters
}

async function makeTopic(brokers: readonly string[]): Promise<void> {
  const admin = new client.Admin({ clientId: 'test', bootstrapBrokers: [...brokers] })
  const settings = {
    'cleanup.policy': 'compact',
    'max.message.bytes': '3000000',
    'segment.ms': '200',
    'min.cleanable.dirty.ratio': '0.001',
    'delete.retention.ms': '0',
  }
  const configs = Object.entries(settings).map(([name, value]) => ({ name, value }))
  await admin.createTopics({ topics: [TOPIC], partitions: 1, replicas: 1, configs })
  await admin.close()
}

/** Of the records that the broker's files still have. */
function keysIn({ folder }: KafkaServer): readonly string[] {
  const place = join(folder, 'data', `${TOPIC}-0`)
  return readdirSync(place)
    .filter((name) => name.endsWith('.log'))
    .flatMap((name) => readBatches(client, readFileSync(join(place, name))).batches)
    .flatMap(({ records }) => records.map(({ key }) => key?.toString() ?? ''))
}
