import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReceiveMessageCommand, SendMessageCommand } from '@aws-sdk/client-sqs'
import { copies } from '../../src/layers/copies.ts'
import { message, one, scene, signal, text } from './sqs-scene.ts'
import { sqsServers } from './sqs-servers.ts'

const servers = sqsServers()

for (const server of servers) {
  test(`${server.name}: A message is readable for others: the body untouched, all headers as JSON in one attribute.`, async (t) => {
    const { transport, queue, client, url } = await scene(t, server)
    const headers = Object.fromEntries(
      Array.from({ length: 30 }, (_, n) => [`x-header-${n}`, `v${n} ü`]),
    )
    const sent = message({
      id: 'order-1',
      body: text('{"total":"12 €"}'),
      headers: { ...headers, traceparent: '00-ab-cd-01' },
      idempotencyKey: 'k',
    })
    await transport.send(queue, [sent], { signal })
    const { Messages } = await client.send(
      new ReceiveMessageCommand({ QueueUrl: url, MessageAttributeNames: ['All'] }),
    )
    const [got] = Messages ?? []
    assert.equal(got?.Body, '{"total":"12 €"}')
    assert.deepEqual(Object.keys(got?.MessageAttributes ?? {}), ['millrace'])
    assert.deepEqual(JSON.parse(got?.MessageAttributes?.millrace?.StringValue ?? ''), {
      ...headers,
      traceparent: '00-ab-cd-01',
      'ce-specversion': '1.0',
      'ce-id': 'order-1',
      'ce-source': '/millrace',
      'ce-type': queue,
      'ce-idempotencykey': 'k',
    })
  })

  test(`${server.name}: A foreign message is known by its MessageId, also as a copy; its attributes are headers.`, async (t) => {
    const { transport, queue, client, url } = await scene(t, server)
    const { MessageId } = await client.send(
      new SendMessageCommand({
        QueueUrl: url,
        MessageBody: '<order/>',
        MessageAttributes: {
          traceparent: { DataType: 'String', StringValue: '00-1' },
          attempts: { DataType: 'Number', StringValue: '7' },
          raw: { DataType: 'Binary', BinaryValue: Uint8Array.of(1, 2, 3) },
        },
      }),
    )
    const copying = copies(transport)
    const from = await copying.subscribe(queue, { group: 'g', leaseMs: 30_000, maxInFlight: 1 })
    const first = await one(from)
    assert.equal(first.envelope.id, MessageId)
    assert.equal(new TextDecoder().decode(first.envelope.body), '<order/>')
    const headers = { traceparent: '00-1', attempts: '7', raw: 'AQID' }
    assert.deepEqual({ ...first.envelope.headers }, headers)
    await from.settle([{ as: 'released', delivery: first, counted: true, delayMs: 0 }])
    const second = await one(from)
    assert.equal(second.envelope.id, MessageId)
    assert.equal(second.history.counted, 1)
    assert.deepEqual({ ...second.envelope.headers }, headers)
  })

  test(`${server.name}: An attribute of our name that is none of ours is a header like any other.`, async (t) => {
    const { client, url, subscribe } = await scene(t, server)
    await client.send(
      new SendMessageCommand({
        QueueUrl: url,
        MessageBody: 'b',
        MessageAttributes: { millrace: { DataType: 'String', StringValue: 'not JSON' } },
      }),
    )
    const { envelope } = await one(await subscribe())
    assert.deepEqual({ ...envelope.headers }, { millrace: 'not JSON' })
  })

  test(`${server.name}: A notification is taken out of the envelope of SNS, when that was asked for.`, async (t) => {
    const { client, url, subscribe } = await scene(t, server, { sns: true })
    const notification = {
      Type: 'Notification',
      MessageId: 'sns-1',
      TopicArn: 'arn:aws:sns:us-east-1:000000000000:orders',
      Message: '{"id":7}',
      MessageAttributes: { tenant: { Type: 'String', Value: 'blue' } },
    }
    for (const body of [JSON.stringify(notification), '{"Type":"Notification"}']) {
      await client.send(new SendMessageCommand({ QueueUrl: url, MessageBody: body }))
    }
    const from = await subscribe()
    const both = [await one(from), await one(from)].map(({ envelope }) => envelope)
    const out = both.find(({ id }) => id === 'sns-1')
    assert.equal(new TextDecoder().decode(out?.body), '{"id":7}')
    assert.deepEqual({ ...out?.headers }, { tenant: 'blue' })
    const other = both.find(({ id }) => id !== 'sns-1')
    assert.equal(new TextDecoder().decode(other?.body), '{"Type":"Notification"}')
  })

  test(`${server.name}: Bodies that SQS takes as no text come back as they were.`, async (t) => {
    const { transport, queue, subscribe } = await scene(t, server)
    const from = await subscribe()
    const bodies = ['\u0000', '\ufffe', 'tab\tcr\r\nend ', '\u007f é', '\ufeffbom']
    for (const value of bodies) {
      const [sent] = await transport.send(queue, [message({ body: text(value) })], { signal })
      assert.equal(sent?.ok, true, JSON.stringify(value))
      const { envelope } = await one(from)
      assert.deepEqual([...envelope.body], [...text(value)], JSON.stringify(value))
    }
  })

  test(`${server.name}: A header that would hide one of ours is refused as invalid.`, async (t) => {
    const { transport, queue } = await scene(t, server)
    for (const name of ['ce-id', 'ce-source', 'millrace-body']) {
      const [sent] = await transport.send(queue, [message({ headers: { [name]: 'x' } })], {
        signal,
      })
      assert.equal(sent?.ok === false && sent.fault.code, 'invalid', name)
    }
  })
}
