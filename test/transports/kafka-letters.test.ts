import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { Admin, Consumer } from '@platformatic/kafka'
import { createMillrace, defineQueue, type Logger, PermanentError } from 'millrace'
import { type KafkaSettings, kafka } from 'millrace/kafka'
import { memoryStore, type StoreConnector } from 'millrace/store'
import { z } from 'zod'
import { systemClock } from '../../src/model/clock.ts'
import { freshHistory } from '../../src/model/history.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { deadProblemsOf } from '../../src/transports/kafka/differences.ts'
import { topicFacts } from '../../src/transports/kafka/topic-facts.ts'
import { backendUrl } from '../backends.ts'
import { quick } from './kafka-harness.ts'
import { until } from './until.ts'

const found = backendUrl('kafka')
const prefix = `letters-${Date.now().toString(36)}-`
let queues = 0

const skip = found === undefined
const brokers = found?.split(',') ?? ['localhost:1']
const admin = new Admin({ clientId: 'test', bootstrapBrokers: brokers })
after(() => admin.close())

const shopOf = (name = `orders-${++queues}`) =>
  defineQueue({
    name,
    owner: 'team-shop',
    payload: z.object({ item: z.string() }),
    retry: { attempts: 2, baseMs: 10 },
  })
type Shop = ReturnType<typeof shopOf>
const open = async (t: TestContext, orders: Shop, opening: Opening = {}) => {
  const { store = memoryStore(), logger = silentLogger, ...more } = opening
  const app = await createMillrace({
    transport: kafka({ brokers, retry: 'park', partitions: 1, prefix, ...quick, ...more }),
    queues: [orders],
    store,
    logger,
  })
  t.after(() => app.close({ timeoutMs: 5_000 }))
  return app
}
/** One that dies of a piano, until somebody has brought one. */
const working = async (t: TestContext, orders: Shop, more: Opening = {}) => {
  const app = await open(t, orders, more)
  const done: string[] = []
  const state = { isPianoThere: false }
  app.work(orders, ({ payload: { item } }) => {
    if (item === 'piano' && !state.isPianoThere) throw new PermanentError('no piano in stock')
    done.push(item)
  })
  await app.start()
  return { app, done, state }
}

test('What died in one app is listed, shown, redriven and discarded by another one with a store of its own.', {
  skip,
}, async (t) => {
  const orders = shopOf()
  const { app, done, state } = await working(t, orders)
  for (const item of ['piano', 'lamp', 'piano']) await app.send(orders, { item })
  const desk = (await open(t, orders)).admin.deadLetters
  await until('two dead letters', async () => (await desk.list(orders)).items.length === 2)
  const [second, first] = (await desk.list(orders)).items
  assert.ok(first !== undefined && second !== undefined)
  assert.match(first.reason, /^no piano in stock/)
  assert.deepEqual([first.payload, first.owner], [{ item: 'piano' }, 'team-shop'])
  assert.equal((await app.admin.stats(orders)).dead, 2)
  state.isPianoThere = true
  await desk.redrive(orders, { ids: [first.id] })
  await until('the piano', () => done.includes('piano'))
  await desk.discard(orders, { ids: [second.id], reason: 'nobody plays' })
  assert.deepEqual((await app.admin.deadLetters.list(orders)).items, [])
  const audit = await app.admin.deadLetters.audit(orders)
  assert.deepEqual(
    audit.map(({ act, messageId }) => [act, messageId]),
    [
      ['discard', second.id],
      ['redrive', first.id],
    ],
  )
})

test('A dead letter is a record that other languages read, and a removal is a record of its key without a value.', {
  skip,
}, async (t) => {
  const orders = shopOf()
  const { app } = await working(t, orders)
  const id = await app.send(orders, { item: 'piano' }, { headers: { 'x-shop': 'north' } })
  const desk = app.admin.deadLetters
  await until('a dead letter', async () => (await desk.list(orders)).items.length === 1)
  await desk.discard(orders, { ids: [id.id], reason: 'sold out' })
  const topic = `${prefix}${orders.name}.dead`
  const [letter, removal, audit] = await recordsOf(t, brokers, topic, 3)
  assert.match(letter?.key ?? '', new RegExp(`^${id.id} \\d{13}$`))
  assert.equal(letter?.value, '{"item":"piano"}')
  const { headers = {} } = letter ?? {}
  const { 'millrace-dead-at': deadAt = '' } = headers
  assert.ok(Math.abs(Date.parse(deadAt) - Date.now()) < 60_000, deadAt)
  const read = ['ce_id', 'ce_type', 'x-shop', 'millrace-error-class']
  assert.deepEqual(
    read.map((name) => headers[name]),
    [id.id, orders.name, 'north', 'permanent'],
  )
  assert.match(headers['millrace-reason'] ?? '', /^no piano in stock/)
  assert.equal(headers['millrace-owner'], 'team-shop')
  assert.deepEqual([removal?.key, removal?.value], [letter?.key, undefined])
  assert.match(audit?.key ?? '', /^ audit /)
})

test('The topic is made compacted; one that deletes, has several partitions or is missing is refused.', {
  skip,
}, async (t) => {
  const orders = shopOf()
  await open(t, orders)
  const topic = `${prefix}${orders.name}.dead`
  const { topics } = await admin.metadata({ topics: [topic] })
  assert.equal(topics.get(topic)?.partitionsCount, 1)
  const [config] = await admin.describeConfigs({
    resources: [{ resourceType: 2, resourceName: topic, configurationKeys: ['cleanup.policy'] }],
  })
  assert.equal(config?.configs[0]?.value, 'compact')
  const other = shopOf()
  const configs = [{ name: 'cleanup.policy', value: 'compact,delete' }]
  const wrong = { topics: [`${prefix}other.dead`], partitions: 2, replicas: 1, configs }
  await admin.createTopics(wrong)
  const named = { queues: { [other.name]: { dead: `${prefix}other.dead` } } }
  await assert.rejects(open(t, other, named), (error: Error) =>
    ['cleanup.policy is compact,delete', 'has 2 partitions', 'max.message.bytes'].every((part) =>
      error.message.includes(part),
    ),
  )
  await open(t, other, { ...named, deadLetters: 'store' })
  const missing = open(t, shopOf(), { topology: 'check' })
  await assert.rejects(missing, /\.dead" for dead letters does not exist; make it/)
})

test('Who has dead letters in the store from before is told of them at the start.', {
  skip,
}, async (t) => {
  const orders = shopOf()
  const store = shared(memoryStore())
  const { app } = await working(t, orders, { store, deadLetters: 'store' })
  await app.send(orders, { item: 'piano' })
  await until('a dead letter', async () => {
    return (await app.admin.deadLetters.list(orders)).items.length === 1
  })
  await app.close()
  const said: string[] = []
  const logger = { ...silentLogger, warn: (message: string) => said.push(message) }
  const now = await open(t, orders, { store, logger })
  assert.deepEqual((await now.admin.deadLetters.list(orders)).items, [])
  assert.equal(said.filter((line) => /1 dead letters are in the store/.test(line)).length, 1)
})

test('A message as large as the topic takes becomes a dead letter that is shown whole, with all of its history.', {
  skip,
}, async (t) => {
  const { signal } = new AbortController()
  const context = { signal, clock: systemClock(), random: Math.random, logger: silentLogger }
  const connector = kafka({ brokers, prefix, maxMessageBytes: 300_000, compression: 'none' })
  const transport = await connector.connect({ ...context, migrate: 'auto' })
  t.after(() => transport.close())
  const { letters, traits } = transport
  assert.ok(letters)
  const record = {
    at: 1,
    errorClass: 'transient',
    code: 'X',
    message: 'm'.repeat(8_000),
  } as const
  const history = { ...freshHistory, records: new Array(40).fill(record) }
  const body = Buffer.alloc(traits.limits.bodyBytes, 'x')
  const put = Array.from({ length: 3 }, (_, n) => ({
    envelope: { id: `large-${n}`, body, headers: {}, priority: 0 },
    ...{ queue: 'large', owner: 'o', errorClass: 'transient' as const, reason: 'r' },
    ...{ history, sentAt: 1 },
  }))
  await letters.put(put)
  const { items } = await letters.list('large', { limit: 10 })
  assert.deepEqual(
    items.map(({ envelope }) => envelope.body.length),
    put.map(() => body.length),
  )
})

test('Each difference of a topic of dead letters is named.', () => {
  const needs = { minInsyncReplicas: 2, maxMessageBytes: 2_000_000 }
  const good = {
    'cleanup.policy': 'compact',
    'delete.retention.ms': '86400000',
    'min.insync.replicas': '2',
    'max.message.bytes': '2000000',
  }
  const problems = (changed: object, partitions = 1, copies = 3) => {
    const settings = new Map(Object.entries({ ...good, ...changed }))
    return deadProblemsOf({ topic: 't', partitions, copies, settings }, needs)
  }
  assert.deepEqual(problems({}), [])
  for (const policy of ['delete', 'compact,delete', 'delete,compact']) {
    assert.match(problems({ 'cleanup.policy': policy }).join(), /^topic "t": cleanup\.policy is /)
  }
  assert.match(problems({}, 6).join(), /^topic "t": it has 6 partitions/)
  assert.equal(problems({ 'min.insync.replicas': '1', 'max.message.bytes': '1' }).length, 2)
  assert.match(problems({ 'delete.retention.ms': '86399999' }).join(), /^topic "t": delete\.ret/)
  assert.match(problems({}, 1, 1).join(), /it has 1 copy, so it can never confirm with the 2 /)
})

test('Where queue and dead letters lie is told by what was seen, and what is weaker is said.', () => {
  const look = (copies: number, settings: Readonly<Record<string, string>>) => ({
    ...{ topic: 't', partitions: 6, copies },
    settings: new Map(Object.entries(settings)),
  })
  const queue = look(3, { 'min.insync.replicas': '2', 'retention.ms': '604800000' })
  assert.deepEqual(topicFacts(queue, undefined), [
    'topic "t": 6 partitions, 3 copies, confirmed by 2 of them at least, kept for 7 days',
  ])
  const same = topicFacts(queue, look(3, { 'min.insync.replicas': '3' }))
  assert.match(same[1] ?? '', /dead letters: 3 copies, confirmed by all, compacted and never/)
  assert.doesNotMatch(same[1] ?? '', /its queue/)
  assert.match(topicFacts(queue, look(1, {}))[1] ?? '', /1 copy, .*; its queue has 3 copies, so/)
  assert.match(topicFacts(look(1, { 'retention.ms': '-1' }), undefined)[0] ?? '', /kept for good$/)
})

test('What is seen of both topics is a fact, also of topics that were just made, and a short memory for removals is refused.', {
  skip,
}, async (t) => {
  const orders = shopOf()
  const factsOf = async (settings: KafkaSettings = {}): Promise<readonly string[]> =>
    (await open(t, orders, settings)).admin.backend().facts
  const topic = `${prefix}${orders.name}`
  const [queue, dead] = await factsOf()
  assert.match(
    queue ?? '',
    new RegExp(`^topic "${topic}": 1 partition, 1 copy, .* kept for 7 days$`),
  )
  assert.match(dead ?? '', new RegExp(`^topic "${topic}.dead" for dead letters: 1 copy, `))
  assert.deepEqual(await factsOf({ topology: 'check' }), [queue, dead])
  assert.deepEqual(await factsOf({ deadLetters: 'store' }), [queue])
  assert.match(
    (await factsOf({ topology: 'none' })).join(),
    /topology is none, so nothing of it is checked/,
  )
  const changed = async (name: string, value: string): Promise<void> => {
    const configs = [{ name, configOperation: 0 as const, value }]
    const resources = [{ resourceType: 2 as const, resourceName: `${topic}.dead`, configs }]
    await admin.incrementalAlterConfigs({ resources })
  }
  await changed('delete.retention.ms', '60000')
  const refused = async (part: RegExp): Promise<boolean> =>
    await open(t, orders).then(
      () => false,
      (error: Error) => part.test(error.message),
    )
  await until('the refusal', () => refused(/dead": delete\.retention\.ms is 60000, so a process/))
  await changed('delete.retention.ms', '86400000')
  await changed('min.insync.replicas', '2')
  await until('the refusal', () =>
    refused(/dead": it has 1 copy, so it can never confirm with the 2/),
  )
})

interface Opening extends KafkaSettings {
  readonly store?: StoreConnector
  readonly logger?: Logger
}

/** The same store for one app after the other. */
function shared(connector: StoreConnector): StoreConnector {
  let opened: ReturnType<StoreConnector['connect']> | undefined
  return {
    ...connector,
    connect: async (context) => {
      opened ??= connector.connect(context)
      return { ...(await opened), close: async () => {} }
    },
  }
}

interface Seen {
  readonly key: string
  readonly value: string | undefined
  readonly headers: Readonly<Record<string, string>>
}

/** As any consumer of Kafka sees them. */
async function recordsOf(
  t: TestContext,
  brokers: readonly string[],
  topic: string,
  count: number,
): Promise<readonly Seen[]> {
  const consumer = new Consumer<Buffer, Buffer, Buffer, Buffer>({
    ...{ clientId: 'reader', groupId: `reader-${topic}`, bootstrapBrokers: [...brokers] },
  })
  const stream = await consumer.consume({ topics: [topic], mode: 'earliest', maxWaitTime: 100 })
  t.after(() => consumer.close(true))
  const seen: Seen[] = []
  for await (const { key, value, headers } of stream) {
    const texts = [...headers].map(([name, text]) => [name.toString(), text.toString()])
    const isThere: unknown = value
    seen.push({
      key: key.toString(),
      value: isThere === null || isThere === undefined ? undefined : value.toString(),
      headers: Object.fromEntries(texts),
    })
    if (seen.length === count) break
  }
  return seen
}
