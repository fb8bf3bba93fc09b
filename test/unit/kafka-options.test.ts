import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kafka } from 'millrace/kafka'
import { problemsOf } from '../../src/transports/kafka/differences.ts'

const good = {
  'cleanup.policy': 'delete',
  'retention.ms': '604800000',
  'retention.bytes': '-1',
  'min.insync.replicas': '2',
  'unclean.leader.election.enable': 'false',
  'max.message.bytes': '1048588',
}
const needs = { retentionMs: 604_800_000, minInsyncReplicas: 2, maxMessageBytes: 1_048_588 }

test('A topic that would lose messages is refused, each difference by name.', () => {
  const found = (
    changed: Partial<Record<keyof typeof good, string>>,
    copies = 3,
  ): readonly string[] => {
    const settings = new Map(Object.entries({ ...good, ...changed }))
    return problemsOf({ topic: 't', partitions: 6, copies, settings }, needs)
  }
  assert.deepEqual(found({}), [])
  assert.deepEqual(found({ 'retention.ms': '-1' }), [])
  const table = [
    ['cleanup.policy', 'compact'],
    ['cleanup.policy', 'compact,delete'],
    ['retention.ms', '604799999'],
    ['retention.bytes', '1000'],
    ['min.insync.replicas', '1'],
    ['unclean.leader.election.enable', 'true'],
    ['max.message.bytes', '1000'],
  ] as const
  for (const [name, value] of table) {
    const problems = found({ [name]: value })
    assert.equal(problems.length, 1)
    assert.match(problems[0] ?? '', new RegExp(`^topic "t": ${name} is ${value}, which `))
  }
  assert.equal(found({ 'cleanup.policy': 'compact', 'retention.ms': '1' }).length, 2)
  assert.deepEqual(found({}, 2), [])
  assert.match(found({}, 1).join(), /^topic "t": it has 1 copy, .* with the 2 that are asked for/)
  assert.match(found({ 'min.insync.replicas': '3' }, 2).join(), /it has 2 copies, .* with the 3 /)
})

test('Wrong options are named all at once, and no address is shown.', () => {
  const wrong = {
    brokers: ['user:secret@host:9092'],
    retry: 'wait',
    heartbeatMs: 20_000,
    partitons: 3,
    queues: { q: { topic: 'a b' } },
  }
  assert.throws(
    () => Reflect.apply(kafka, undefined, [wrong]),
    (error: Error) => {
      for (const part of [
        'brokers',
        'retry',
        'heartbeatMs',
        'did you mean "partitions"',
        'queues.q.topic',
      ]) {
        assert.ok(error.message.includes(part), `${part} in ${error.message}`)
      }
      return !error.message.includes('secret')
    },
  )
})

test('A wrong connection is named, and none of its secrets is shown.', () => {
  const refused = (connection: unknown, ...parts: readonly string[]): void => {
    assert.throws(
      () => Reflect.apply(kafka, undefined, [{ brokers: 'host:9092', connection }]),
      (error: Error) => {
        for (const part of parts)
          assert.ok(error.message.includes(part), `${part} in ${error.message}`)
        return !error.message.includes('geheim')
      },
    )
  }
  const account = { username: 'geheim', password: 'geheim' }
  refused('geheim:geheim', 'connection: expected an object')
  refused(
    { ssl: {}, tls: 3, connectTimeoutMs: 1 },
    '"connection.ssl"',
    'connection.tls',
    'connectTimeoutMs',
  )
  refused({ sasl: { mechanism: 'SCRAM', ...account } }, 'connection.sasl.mechanism')
  refused({ sasl: { mechanism: 'PLAIN', username: 'geheim' } }, 'connection.sasl.password')
  refused({ sasl: { mechanism: 'OAUTHBEARER', ...account } }, 'connection.sasl.token', 'username')
})
