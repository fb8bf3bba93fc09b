import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReceiveMessageCommand, SendMessageCommand } from '@aws-sdk/client-sqs'
import { type SqsOptions, sqs } from 'millrace/sqs'
import { type Clock, systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { allFailed, sdkError, watchedClient } from './sqs-client.ts'
import { account, freshName } from './sqs-harness.ts'
import { acked, message, one, receive, released, scene, signal, take } from './sqs-scene.ts'
import { sqsServers } from './sqs-servers.ts'
import { until } from './until.ts'

const servers = sqsServers()

const HOUR_MS = 3_600_000

for (const server of servers) {
  test(`${server.name}: what is more than ten messages or 1 MiB goes out in several requests.`, async (t) => {
    const { transport, queue, calls, subscribe } = await scene(t, server)
    const large = Array.from({ length: 5 }, () =>
      message({ body: new Uint8Array(400_000).fill(65) }),
    )
    const small = Array.from({ length: 23 }, () => message())
    const sent = await transport.send(queue, [...large, ...small], { signal })
    assert.ok(sent.every((each) => each.ok))
    const requests = calls.filter(({ action }) => action === 'SendMessageBatch')
    const sizes = requests.map(({ input }) =>
      Array.isArray(input.Entries) ? input.Entries.length : 0,
    )
    assert.deepEqual(sizes, [2, 2, 10, 10, 4])
    const from = await subscribe()
    const all = await take(from, 28)
    assert.equal(new Set(all.map(({ envelope }) => envelope.id)).size, 28)
    const outcomes = await from.settle(all.map(acked))
    assert.ok(outcomes.every((each) => each.ok))
  })

  test(`${server.name}: a part of a batch that failed is answered item by item, and the rest is stored.`, async (t) => {
    const { transport, queue, interfere, client, url } = await scene(t, server)
    const codes = ['RequestThrottled', 'InternalError', 'KmsThrottled', 'InvalidMessageContents']
    interfere(({ action }) => {
      if (action !== 'SendMessageBatch') return undefined
      const Failed = codes.map((Code, at) => ({ Id: String(at), Code, SenderFault: at === 3 }))
      return { output: { Successful: [{ Id: '4' }], Failed } }
    })
    const batch = Array.from({ length: 5 }, () => message())
    const sent = await transport.send(queue, batch, { signal })
    assert.deepEqual(
      sent.map((each) => (each.ok ? 'ok' : `${each.fault.code} ${each.fault.outcome}`)),
      [
        'throttled notApplied',
        'unavailable unknown',
        'throttled notApplied',
        'invalid notApplied',
        'ok',
      ],
    )
    interfere(undefined)
    const { Messages } = await client.send(new ReceiveMessageCommand({ QueueUrl: url }))
    assert.deepEqual(Messages ?? [], [])
  })

  test(`${server.name}: a whole request that failed is a fault of its items, and of the call when nothing went out.`, async (t) => {
    const { transport, queue, interfere } = await scene(t, server)
    let requests = 0
    interfere(({ action }) => {
      if (action !== 'SendMessageBatch') return undefined
      requests += 1
      return requests === 1 ? sdkError('InternalError', 'no', 500) : undefined
    })
    const batch = Array.from({ length: 11 }, () => message())
    const sent = await transport.send(queue, batch, { signal })
    assert.deepEqual(sent.map(({ ok }) => ok).sort(), [...batch.slice(1).map(() => false), true])
    interfere(() => sdkError('InternalError', 'no', 500))
    await assert.rejects(transport.send(queue, batch, { signal }), { name: 'InternalError' })
  })

  test(`${server.name}: errors of SQS that no stand-in gives are named by what they mean.`, async (t) => {
    const { transport, queue, interfere } = await scene(t, server)
    const faults = [
      ['RequestThrottled', 'throttled notApplied true'],
      ['ThrottlingException', 'throttled notApplied true'],
      ['ExpiredTokenException', 'unavailable notApplied true'],
      ['RequestTimeTooSkewed', 'unavailable notApplied true'],
      ['CredentialsProviderError', 'unavailable notApplied true'],
      ['AccessDenied', 'denied notApplied false'],
      ['InvalidClientTokenId', 'denied notApplied false'],
      ['KmsAccessDenied', 'denied notApplied false'],
      ['QueueDoesNotExist', 'notFound notApplied false'],
      ['AWS.SimpleQueueService.NonExistentQueue', 'notFound notApplied false'],
      ['AWS.SimpleQueueService.BatchRequestTooLong', 'tooLarge notApplied false'],
      ['SomethingNew', 'invalid notApplied false'],
    ] as const
    for (const [name, expected] of faults) {
      interfere(() => sdkError(name, 'said no'))
      const error: unknown = await transport.send(queue, [message()], { signal }).then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      const { code, outcome, retryable } = transport.diagnose(error)
      assert.equal(`${code} ${outcome} ${retryable}`, expected, name)
    }
  })

  test(`${server.name}: a message that is no longer in flight is lost to renewal and release, and says so.`, async (t) => {
    const { transport, queue, interfere, subscribe } = await scene(t, server)
    await transport.send(queue, [message(), message(), message()], { signal })
    const from = await subscribe()
    const [renewed, back, deleted] = await take(from, 3)
    assert.ok(renewed && back && deleted)
    interfere((call) => {
      if (call.action === 'ChangeMessageVisibilityBatch')
        return allFailed(call, 'MessageNotInflight')
      if (call.action === 'DeleteMessageBatch') return allFailed(call, 'ReceiptHandleIsInvalid')
      return undefined
    })
    const outcomes = [
      ...((await from.renew?.([renewed], 30_000)) ?? []),
      ...(await from.settle([released(back), acked(deleted)])),
    ]
    assert.deepEqual(
      outcomes.map((each) => each.ok || each.fault.code),
      ['lost', 'lost', 'lost'],
    )
    for (const { claim } of [renewed, back, deleted]) assert.equal(claim.lost.aborted, true)
  })

  test(`${server.name}: an ack that failed may be tried again, and is then the end.`, async (t) => {
    const { transport, queue, interfere, subscribe } = await scene(t, server)
    await transport.send(queue, [message()], { signal })
    const from = await subscribe()
    const delivery = await one(from)
    interfere(() => sdkError('ServiceUnavailable', 'later', 503))
    const [failed] = await from.settle([acked(delivery)])
    assert.equal(failed?.ok === false && failed.fault.retryable, true)
    assert.equal(delivery.claim.lost.aborted, false)
    interfere(undefined)
    assert.deepEqual(await from.settle([acked(delivery)]), [{ ok: true }])
  })

  test(`${server.name}: too much in flight is backpressure: receives answer empty without haste, and health says why.`, async (t) => {
    const { transport, queue, calls, interfere, subscribe } = await scene(t, server)
    await transport.send(queue, [message()], { signal })
    const from = await subscribe()
    interfere(({ action }) =>
      action === 'ReceiveMessage'
        ? sdkError('AWS.SimpleQueueService.OverLimit', 'too many messages in flight', 403)
        : undefined,
    )
    const before = calls.length
    assert.deepEqual(await from.receive({ max: 10, waitMs: 2_500, signal }), [])
    const asked = calls.length - before
    assert.ok(asked >= 2 && asked <= 5, `asked ${asked} times`)
    assert.match(transport.problems?.()[0] ?? '', new RegExp(`queue "${queue}": too many`))
    interfere(undefined)
    await one(from)
    assert.deepEqual(transport.problems?.(), [])
  })

  test(`${server.name}: a renewal ends at 12 hours after the receive, and beyond them the message is lost.`, async (t) => {
    const real = systemClock()
    let aheadMs = 0
    const clock: Clock = { ...real, now: () => real.now() + aheadMs }
    const { client, calls } = watchedClient(server)
    const context = {
      signal,
      clock,
      random: Math.random,
      logger: silentLogger,
      migrate: 'auto' as const,
    }
    const transport = await sqs({ client }).connect(context)
    t.after(async () => {
      await transport.close()
      client.destroy()
    })
    const queue = freshName()
    await transport.topology.ensure([{ name: queue, owner: 'o', maxDepth: undefined }], signal)
    await transport.send(queue, [message()], { signal })
    const from = await transport.subscribe(queue, {
      group: 'g',
      leaseMs: 12 * HOUR_MS,
      maxInFlight: 1,
    })
    const delivery = await one(from)
    aheadMs = 11.5 * HOUR_MS
    const renew = async (): Promise<unknown> => await from.renew?.([delivery], HOUR_MS)
    assert.deepEqual(await renew(), [{ ok: true }])
    const entries = calls.at(-1)?.input.Entries
    const [entry]: { VisibilityTimeout: number }[] = Array.isArray(entries) ? entries : []
    const seconds = entry?.VisibilityTimeout ?? 0
    assert.ok(seconds > 1_700 && seconds <= 1_800, `${seconds} s`)
    aheadMs = 12 * HOUR_MS - 500
    const asked = calls.length
    assert.match(JSON.stringify(await renew()), /"code":"lost"/)
    assert.equal(calls.length, asked)
    assert.equal(delivery.claim.lost.aborted, true)
  })

  test(`${server.name}: delays to 15 minutes are taken in whole seconds, never too short; above they are refused.`, async (t) => {
    const { transport, queue, calls } = await scene(t, server)
    const delays = [1, 1_001, 900_000, 900_001]
    const batch = delays.map((delayMs) => message({ delayMs }))
    const moments = [message({ readyAt: Date.now() + HOUR_MS }), message({ readyAt: 1 })]
    const sent = await transport.send(queue, [...batch, ...moments], { signal })
    assert.deepEqual(
      sent.map((each) => each.ok || each.fault.code),
      [true, true, true, 'invalid', 'invalid', true],
    )
    const entries = calls.at(-1)?.input.Entries
    const all: { DelaySeconds?: number }[] = Array.isArray(entries) ? entries : []
    assert.deepEqual(
      all.map(({ DelaySeconds }) => DelaySeconds),
      [1, 2, 900, undefined],
    )
  })

  test(`${server.name}: a message that arrives when nobody waits any more is given back at once.`, async (t) => {
    const { transport, queue, subscribe } = await scene(t, server)
    const from = await subscribe(60_000)
    const stop = new AbortController()
    const waiting = from.receive({ max: 1, waitMs: 20_000, signal: stop.signal })
    await until('the long poll', () => true)
    stop.abort()
    assert.deepEqual(await waiting, [])
    const sent = message()
    await transport.send(queue, [sent], { signal })
    const back = await one(await subscribe())
    assert.equal(back.envelope.id, sent.id)
  })

  test(`${server.name}: a queue's own, smaller size limit counts.`, async (t) => {
    const { transport, queue, interfere } = await scene(t, server)
    // ElasticMQ forgets the attribute.
    interfere(({ action }) =>
      action === 'GetQueueAttributes'
        ? { output: { Attributes: { MaximumMessageSize: '2048' } } }
        : undefined,
    )
    await transport.topology.ensure([{ name: queue, owner: 'o', maxDepth: undefined }], signal)
    const bodies = [500, 4_000].map((size) => message({ body: new Uint8Array(size).fill(65) }))
    const sent = await transport.send(queue, bodies, { signal })
    assert.deepEqual(
      sent.map((each) => each.ok || each.fault.code),
      [true, 'tooLarge'],
    )
  })

  test(`${server.name}: a delivery count says how often SQS handed the message out.`, async (t) => {
    const { client, url, subscribe } = await scene(t, server)
    await client.send(new SendMessageCommand({ QueueUrl: url, MessageBody: 'x' }))
    const from = await subscribe()
    for (const count of [1, 2, 3]) {
      const delivery = await one(from)
      assert.equal(delivery.deliveries, count)
      await from.settle([released(delivery)])
    }
    assert.deepEqual(
      (await receive(from)).map(({ deliveries }) => deliveries),
      [4],
    )
  })
}

test('Options are checked all at once, and an address is never shown.', () => {
  const wrong: Record<string, unknown> = {
    regoin: 'x',
    kind: 'lifo',
    topology: 'make',
    sns: 1,
    prefix: 'a b',
    endpoint: 'secret@:nowhere',
    timeoutMs: 5,
    queues: { a: 'no name!', b: 'orders.fifo' },
  }
  assert.throws(
    () => sqs(wrong),
    (error: Error) => {
      assert.ok(!error.message.includes('secret'))
      for (const part of [
        '"regoin", did you mean "region"',
        'kind:',
        'topology:',
        'sns:',
        'prefix:',
        'endpoint:',
        'timeoutMs:',
        'queues.a:',
        'queues.b:',
      ]) {
        assert.ok(error.message.includes(part), part)
      }
      return true
    },
  )
  const both: SqsOptions = {
    ...account,
    client: watchedClient({ name: 'x', url: 'http://127.0.0.1:1' }).client,
  }
  assert.throws(
    () => sqs(both),
    /region: the client has its own.*credentials: the client has its own/,
  )
})
