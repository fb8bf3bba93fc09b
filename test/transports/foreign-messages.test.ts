import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { GetQueueUrlCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { connect as dial } from '@nats-io/transport-node'
import { Producer } from '@platformatic/kafka'
import { createClient } from '@redis/client'
import { type Connector, createMillrace, defineQueue, silentLogger } from 'millrace'
import { kafka } from 'millrace/kafka'
import { nats } from 'millrace/nats'
import { rabbitmq } from 'millrace/rabbitmq'
import { redis } from 'millrace/redis'
import { sqs } from 'millrace/sqs'
import { sqliteStore } from 'millrace/store'
import { memoryInbox } from 'millrace/testing'
import { z } from 'zod'
import { type BackendName, backendUrl } from '../backends.ts'
import { withChannel } from './rabbitmq-subjects.ts'
import { account } from './sqs-harness.ts'
import { until } from './until.ts'

interface Subject {
  readonly server: BackendName
  readonly connector: (url: string) => Connector
  /** With the broker's own client, and nothing but a body. Answers the id that the broker tells, if it does. */
  readonly send: (url: string, queue: string, body: Buffer) => Promise<string | undefined>
  /** What the documents say of the identity. */
  readonly id: RegExp
  /** Bytes that are no text; SQS takes only text. */
  readonly spoiled: Buffer
}

const spoiled = Buffer.from([0xff, 0xfe, 0x00, 0x01, 0x7b])

const subjects: readonly Subject[] = [
  {
    server: 'redis 7',
    connector: (url) => redis({ url }),
    id: /^\d+-\d+$/,
    spoiled,
    async send(url, queue, body) {
      const client = await createClient({ url }).connect()
      const args = ['XADD', `{millrace:${queue}}:ready`, '*', 'body', body]
      const id = String(await client.sendCommand(args))
      client.destroy()
      return id
    },
  },
  {
    server: 'rabbitmq',
    connector: (url) => rabbitmq({ url }),
    id: /^shop-\d+$/,
    spoiled,
    async send(url, queue, body) {
      const messageId = `shop-${body.byteLength}`
      await withChannel(url, async (channel) => {
        channel.sendToQueue(queue, body, { messageId })
        // Whose answer comes behind what was sent.
        await channel.checkQueue(queue)
      })
      return messageId
    },
  },
  {
    server: 'nats',
    connector: (servers) => nats({ servers }),
    id: /^\d{13}-\d+$/,
    spoiled,
    async send(servers, queue, body) {
      const connection = await dial({ servers })
      await connection.request(`millrace.queue.${queue}`, body)
      await connection.close()
      return undefined
    },
  },
  {
    server: 'sqs elasticmq',
    connector: (endpoint) => sqs({ ...account, endpoint }),
    id: /^[0-9a-f-]{36}$/,
    spoiled: Buffer.from('no { json'),
    async send(endpoint, queue, body) {
      const client = new SQSClient({ ...account, endpoint })
      const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: queue }))
      const sent = await client.send(new SendMessageCommand({ QueueUrl, MessageBody: `${body}` }))
      client.destroy()
      return sent.MessageId
    },
  },
  {
    server: 'kafka',
    connector: (brokers) => kafka({ brokers, retry: 'hold' }),
    id: /^[0-9a-f-]{36}:\d+:\d+$/,
    spoiled,
    async send(broker, topic, value) {
      const given = { clientId: 'shop', bootstrapBrokers: [broker], autocreateTopics: false }
      const producer = new Producer<Buffer, Buffer, Buffer, Buffer>(given)
      await producer.send({ messages: [{ topic, value }] })
      await producer.close()
      return undefined
    },
  },
]

const base = { owner: 'team-a', retry: { attempts: 3, baseMs: 20 } } as const

for (const subject of subjects) {
  const url = backendUrl(subject.server)
  if (url === undefined) continue
  test(`${subject.server}: a bare message runs under its documented id; one that cannot be decoded is dead with its bytes.`, async (t) => {
    const name = `foreign-${process.pid}`
    const store = sqliteStore({ file: join(await folder(t), 'store.db') })
    const orders = defineQueue({ ...base, name, payload: z.object({ n: z.number() }) })
    const parts = { transport: subject.connector(url), store, logger: silentLogger }
    const app = await createMillrace({ ...parts, queues: [orders], inbox: memoryInbox() })
    t.after(() => app.close({ timeoutMs: 2_000 }))
    const ran: (readonly string[])[] = []
    app.work(orders, ({ id, idempotencyKey }) => void ran.push([id, idempotencyKey]))
    await app.start()
    const goodId = await subject.send(url, name, Buffer.from('{"n":1}'))
    const badId = await subject.send(url, name, subject.spoiled)
    await until('the good one', () => ran.length > 0)
    const letters = async () => (await app.admin.deadLetters.list(orders)).items
    await until('the dead letter', async () => (await letters()).length > 0)
    const [[id = '', key] = []] = ran
    assert.match(id, subject.id)
    assert.deepEqual([id, key], [goodId ?? id, id])
    const [letter] = await letters()
    assert.ok(letter)
    assert.match(letter.id, subject.id)
    assert.equal(letter.id, badId ?? letter.id)
    assert.equal(letter.errorClass, 'permanent')
    assert.match(letter.reason, /could not be read/)
    // Who takes the queue for bytes sees them.
    const codec = { contentType: 'application/octet-stream', encode: asBytes, decode: asBytes }
    const raw = defineQueue({ ...base, name, payload: z.instanceof(Uint8Array), codec })
    const other = await createMillrace({ ...parts, queues: [raw] })
    t.after(() => other.close({ timeoutMs: 2_000 }))
    const shown = await other.admin.deadLetters.show(raw, letter.id)
    assert.deepEqual(Buffer.from(asBytes(shown?.payload)), subject.spoiled)
    assert.equal(ran.length, 1)
  })
}

async function folder(t: TestContext): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'millrace-foreign-'))
  t.after(() => rm(made, { recursive: true, force: true }))
  return made
}

function asBytes(payload: unknown): Uint8Array {
  if (payload instanceof Uint8Array) return payload
  throw new TypeError('not bytes')
}
