import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  ListQueuesCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs'
import { sqs, sqsPolicy } from 'millrace/sqs'
import type { QueueSpec } from '../../src/transport/transport.ts'
import { freshName, open } from './sqs-harness.ts'
import { message, one, scene, signal } from './sqs-scene.ts'
import { sqsServers } from './sqs-servers.ts'

const servers = sqsServers()

function spec(name: string, more: Partial<QueueSpec> = {}): QueueSpec {
  return { name, owner: 'team', maxDepth: undefined, ...more }
}

async function make(
  client: SQSClient,
  QueueName: string,
  Attributes: Record<string, string>,
): Promise<string> {
  const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName, Attributes }))
  assert.ok(QueueUrl)
  return QueueUrl
}

async function attributesOf(client: SQSClient, QueueUrl: string): Promise<Record<string, string>> {
  const input = { QueueUrl, AttributeNames: ['All' as const] }
  return (await client.send(new GetQueueAttributesCommand(input))).Attributes ?? {}
}

for (const server of servers) {
  test(`${server.name}: everything that is wrong with all queues is said at once, and nothing is changed.`, async (t) => {
    const { client } = await scene(t, server)
    const [missing, mean, short, fifo, dead] = [1, 2, 3, 4, 5].map(() => freshName())
    assert.ok(missing && mean && short && fifo && dead)
    const deadUrl = await make(client, dead, {})
    const { QueueArn = '' } = await attributesOf(client, deadUrl)
    const policy = JSON.stringify({ deadLetterTargetArn: QueueArn, maxReceiveCount: 10 })
    const meanUrl = await make(client, mean, { RedrivePolicy: policy })
    await make(client, short, { MessageRetentionPeriod: '60' })
    await make(client, `${fifo}.fifo`, { FifoQueue: 'true' })
    const before = await attributesOf(client, meanUrl)
    const transport = await open(sqs({ client, topology: 'check', queues: { [dead]: QueueArn } }))
    t.after(() => transport.close())
    const specs = [
      spec(missing),
      spec(mean, { attempts: 8 }),
      spec(short, { horizonMs: 90_000 }),
      spec(dead, { attempts: 8, horizonMs: 90_000 }),
      spec('not a name'),
    ]
    await assert.rejects(transport.topology.ensure(specs, signal), (error: Error) => {
      const wanted = [
        `queue "${missing}": there is no ${missing} at SQS`,
        `queue "${mean}" has a redrive policy with maxReceiveCount 10`,
        'raise it to 18 or more',
        // No stand-in drops the attribute, but ElasticMQ does not keep it.
        ...(server.name === 'elasticmq' ? [] : [`queue "${short}" keeps messages for 60 s`]),
        'queue "not a name": SQS takes letters',
      ]
      for (const part of wanted)
        assert.ok(error.message.includes(part), `${part}: ${error.message}`)
      assert.ok(!error.message.includes(`"${dead}"`))
      return true
    })
    await transport.topology.ensure([spec(mean, { attempts: 0 })], signal)
    assert.deepEqual(await attributesOf(client, meanUrl), before)
  })

  test(`${server.name}: a look makes nothing, and names what is wrong with what is there.`, async (t) => {
    const { client } = await scene(t, server)
    const [missing, fifo] = [freshName(), `${freshName()}.fifo`]
    await make(client, fifo, { FifoQueue: 'true' })
    const specs = [spec(missing), spec(fifo)]
    for (const topology of ['create', 'check', 'none'] as const) {
      const transport = await open(sqs({ client, topology }))
      t.after(() => transport.close())
      const found = await transport.topology.differences?.(specs, signal)
      const wrong = `queue "${fifo}" is a FIFO queue; use sqs({ kind: "fifo" }) for it`
      const lacks = `queue "${missing}": there is no ${missing} at SQS, and topology is "check"`
      const wanted = { create: [wrong], check: [lacks, wrong], none: [] }
      assert.deepEqual(found, wanted[topology])
    }
    const { QueueUrls = [] } = await client.send(
      new ListQueuesCommand({ QueueNamePrefix: missing }),
    )
    assert.deepEqual(QueueUrls, [])
  })

  test(`${server.name}: a queue of the other kind is refused with what to write instead.`, async (t) => {
    const { client } = await scene(t, server)
    const name = freshName()
    const url = await make(client, `${name}.fifo`, { FifoQueue: 'true' })
    const transport = await open(sqs({ client, topology: 'check' }))
    t.after(() => transport.close())
    await assert.rejects(transport.topology.ensure([spec(`${name}.fifo`)], signal), {
      message: `sqs: queue "${name}.fifo" is a FIFO queue; use sqs({ kind: "fifo" }) for it`,
    })
    const right = await open(sqs({ client, kind: 'fifo', topology: 'check' }))
    t.after(() => right.close())
    await right.topology.ensure([spec(name)], signal)
    assert.throws(() => sqs({ client, queues: { q: url } }), /names of FIFO queues end in .fifo/)
  })

  test(`${server.name}: a queue is found by its URL, its ARN, its name or under a prefix.`, async (t) => {
    const { client, transport, queue, url } = await scene(t, server)
    const { QueueArn = '' } = await attributesOf(client, url)
    for (const place of [url, QueueArn, queue]) {
      const other = await open(sqs({ client, topology: 'check', queues: { orders: place } }))
      t.after(() => other.close())
      await other.topology.ensure([spec('orders')], signal)
      const sent = message()
      await other.send('orders', [sent], { signal })
      const from = await transport.subscribe(queue, { group: 'g', leaseMs: 30_000, maxInFlight: 1 })
      const delivery = await one(from)
      assert.equal(delivery.envelope.id, sent.id, place)
      await from.settle([{ as: 'acked', delivery }])
    }
    const prefixed = await open(sqs({ client, topology: 'check', prefix: queue.slice(0, 3) }))
    t.after(() => prefixed.close())
    await prefixed.topology.ensure([spec(queue.slice(3))], signal)
  })

  test(`${server.name}: a queue that is deleted behind a sender is notFound, not silence.`, async (t) => {
    const { transport, client, queue, url } = await scene(t, server)
    const { DeleteQueueCommand } = await import('@aws-sdk/client-sqs')
    await client.send(new DeleteQueueCommand({ QueueUrl: url }))
    const code = await transport.send(queue, [message()], { signal }).then(
      ([sent]) => (sent?.ok === false ? sent.fault.code : 'ok'),
      (error: unknown) => transport.diagnose(error).code,
    )
    assert.equal(code, 'notFound')
  })

  test(`${server.name}: with topology none nothing is asked before the first act.`, async (t) => {
    const { client, calls, queue } = await scene(t, server)
    const transport = await open(sqs({ client, topology: 'none' }))
    t.after(() => transport.close())
    const before = calls.length
    await transport.topology.ensure([spec(queue)], signal)
    assert.equal(calls.length, before)
  })
}

test('The policy names the rights that are needed and no other.', () => {
  const { Statement } = sqsPolicy({
    queues: ['orders', 'arn:aws:sqs:us-east-1:111122223333:mails'],
    region: 'eu-west-1',
    account: '123456789012',
    topology: 'check',
  })
  assert.deepEqual(Statement, [
    {
      Sid: 'MillraceWork',
      Effect: 'Allow',
      Action: [
        'sqs:GetQueueUrl',
        'sqs:GetQueueAttributes',
        'sqs:SendMessage',
        'sqs:ReceiveMessage',
        'sqs:ChangeMessageVisibility',
        'sqs:DeleteMessage',
      ],
      Resource: [
        'arn:aws:sqs:eu-west-1:123456789012:orders',
        'arn:aws:sqs:us-east-1:111122223333:mails',
      ],
    },
  ])
  const create = sqsPolicy({ queues: [], region: 'eu-west-1', account: '123456789012' })
  assert.deepEqual(create.Statement.at(-1)?.Action, ['sqs:CreateQueue'])
})
