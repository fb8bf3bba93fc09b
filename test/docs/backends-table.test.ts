import assert from 'node:assert/strict'
import { test } from 'node:test'
import { abilitiesTable, type Introduced } from '../../scripts/guarantees-abilities.ts'
import type { Traits } from '../../src/transport/traits.ts'
import { kafkaTraits } from '../../src/transports/kafka/traits.ts'
import { memoryTraits } from '../../src/transports/memory/traits.ts'
import { natsTraits } from '../../src/transports/nats/traits.ts'
import { postgresTraits } from '../../src/transports/postgres/traits.ts'
import { resolve } from '../../src/transports/rabbitmq/options.ts'
import { laneTraits, rabbitTraits } from '../../src/transports/rabbitmq/traits.ts'
import { redisTraits } from '../../src/transports/redis/traits.ts'
import { sqliteTraits } from '../../src/transports/sqlite/traits.ts'
import { fifoTraits, standardTraits } from '../../src/transports/sqs/traits.ts'
import { read } from '../source-files.ts'

const PAUSES = 'browse.setPaused'
const rabbit = {
  product: 'RabbitMQ',
  version: '3.10.8',
  hasQuorumTtl: true,
  hasQueueTimeout: false,
  limitsDeliveries: false,
}
const nats = { version: '2.12.0', maxPayload: 1_048_576, schedules: true, pauses: true }

/** With the settings that the guide asks for. */
const BACKENDS: readonly (readonly [name: string, traits: Traits, members: readonly string[]])[] = [
  ['memory', memoryTraits, ['transaction', PAUSES]],
  ['sqlite', sqliteTraits('disk'), ['transaction', PAUSES]],
  ['postgres', postgresTraits, ['transaction', PAUSES]],
  ['redis', redisTraits(true), [PAUSES]],
  ['nats', natsTraits(nats, { replicas: 3, schedules: true, lanes: undefined }), [PAUSES]],
  ['nats, lanes', natsTraits(nats, { replicas: 3, schedules: true, lanes: 16 }), [PAUSES]],
  ['rabbitmq', rabbitTraits(resolve({ url: 'amqp://localhost' }), rabbit), []],
  ['rabbitmq, lanes', laneTraits(resolve({ url: 'amqp://localhost' }), rabbit), []],
  ['sqs standard', standardTraits, []],
  ['sqs fifo', fifoTraits, []],
  ['kafka', kafkaTraits(1_048_588, true), ['letters.put']],
]

test('The table of the guide is what the backends say of themselves.', () => {
  const introduced: readonly Introduced[] = BACKENDS.map(([backend, traits, members]) => ({
    backend,
    about: { traits, members },
  }))
  const guide = read('docs/guide/backends.md')
  const shown = /<!-- table: abilities[^\n]*-->\n([\s\S]*?)\n?<!-- end -->/.exec(guide)?.[1]
  const expected = abilitiesTable(introduced)
  assert.equal(shown, expected, `paste this between the two comments:\n${expected}`)
})
