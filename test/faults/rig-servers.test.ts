import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startElasticmq } from '../../scripts/rig/elasticmq-server.ts'
import { startFauxqs } from '../../scripts/rig/fauxqs-server.ts'
import { kafkaAnswers } from '../../scripts/rig/kafka-ask.ts'
import { startKafka } from '../../scripts/rig/kafka-server.ts'
import { natsAnswers, startNats } from '../../scripts/rig/nats-server.ts'
import type { PrivateServer } from '../../scripts/rig/private-server.ts'
import { rabbitmqAnswers } from '../../scripts/rig/rabbitmq-backend.ts'
import { startRabbitmq } from '../../scripts/rig/rabbitmq-server.ts'
import { redisAnswers, startRedis } from '../../scripts/rig/redis-server.ts'
import { type SqsServer, sqsAnswers } from '../../scripts/rig/sqs-server.ts'
import { type BackendName, backendUrl } from '../backends.ts'
import { eventually } from '../examples/child.ts'

/** A server of a fault test's own, and how to ask it something. */
interface Breakable {
  readonly server: PrivateServer
  answers(): Promise<boolean>
}

const STARTS: readonly (readonly [BackendName, () => Promise<Breakable>])[] = [
  ['rabbitmq', rabbitmq],
  ['kafka', kafka],
  ['sqs elasticmq', () => sqs(startElasticmq())],
  ['sqs fauxqs', () => sqs(startFauxqs())],
  ['nats', nats],
  ['redis 7', () => redis('redis 7')],
  ['redis 6.2', () => redis('redis 6.2')],
  ['valkey', () => redis('valkey')],
]

async function redis(kind: 'redis 7' | 'redis 6.2' | 'valkey'): Promise<Breakable> {
  const server = await startRedis(kind)
  return { server, answers: () => redisAnswers(server.url) }
}

async function nats(): Promise<Breakable> {
  const server = await startNats()
  return { server, answers: () => natsAnswers(server.url) }
}

async function rabbitmq(): Promise<Breakable> {
  const server = await startRabbitmq()
  return { server, answers: () => rabbitmqAnswers(server.url) }
}

async function sqs(starting: Promise<SqsServer>): Promise<Breakable> {
  const server = await starting
  return { server, answers: () => sqsAnswers(server.url) }
}

async function kafka(): Promise<Breakable> {
  const { nodes } = await startKafka()
  const [server] = nodes
  assert.ok(server)
  return { server, answers: () => kafkaAnswers(server.broker) }
}

/** What takes longest first. */
describe('servers of fault tests', { concurrency: 3 }, () => {
  for (const [name, start] of STARTS) {
    if (backendUrl(name) === undefined) continue
    test(`${name} can be halted, crashed and frozen by a fault test, comes back at its address, and ends`, async () => {
      const { server, answers } = await start()
      try {
        await breakIt(server, answers)
      } finally {
        await Promise.all([server.stop(), server.stop()])
      }
      assert.equal(await answers(), false)
    })
  }
})

async function breakIt(server: PrivateServer, answers: () => Promise<boolean>): Promise<void> {
  assert.equal(await answers(), true)
  await server.halt('clean')
  assert.equal(await answers(), false)
  await server.resume()
  assert.equal(await answers(), true)
  await server.restart('crash')
  assert.equal(await answers(), true)
  server.freeze()
  // Threads on another core may answer once more before they stop.
  await eventually(answers, (alive) => !alive)
  server.thaw()
  await eventually(answers, (alive) => alive)
}
