import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Subscription } from '../../src/transport/transport.ts'
import { acked, idsOf, message, one, receive, released, scene, signal, take } from './sqs-scene.ts'
import { sqsServers } from './sqs-servers.ts'
import { until } from './until.ts'

const servers = sqsServers()

function ordered(...names: readonly string[]): readonly Envelope[] {
  return names.map((id) => message({ id, orderingKey: id.slice(0, 1) }))
}

/** Handles what comes, as a worker does; `decide` says whether a run succeeds. */
async function drain(
  from: Subscription,
  count: number,
  decide: (delivery: Delivery) => boolean,
): Promise<readonly string[]> {
  const done: string[] = []
  await until(`${count} done`, async () => {
    for (const delivery of await receive(from)) {
      const ok = decide(delivery)
      if (ok) done.push(delivery.envelope.id)
      await from.settle([ok ? acked(delivery) : released(delivery, 1_000)])
    }
    return done.length >= count
  })
  return done
}

for (const server of servers) {
  test(`${server.name}: A failed message holds its group and no other, and the later ones come after it, once each.`, async (t) => {
    const { transport, queue, subscribe } = await scene(t, server, { kind: 'fifo' })
    await transport.send(queue, ordered('A1', 'A2', 'B1', 'A3', 'B2'), { signal })
    const runs: string[] = []
    const done = await drain(await subscribe(), 5, ({ envelope: { id } }) => {
      runs.push(id)
      return id !== 'A2' || runs.filter((run) => run === 'A2').length > 1
    })
    assert.deepEqual(
      done.filter((id) => id.startsWith('A')),
      ['A1', 'A2', 'A3'],
    )
    assert.deepEqual(
      done.filter((id) => id.startsWith('B')),
      ['B1', 'B2'],
    )
    assert.deepEqual([...runs].sort(), ['A1', 'A2', 'A2', 'A3', 'B1', 'B2'])
    assert.ok(done.indexOf('B2') < done.indexOf('A2'), `B waited for A: ${done}`)
  })

  test(`${server.name}: Of a batch, nothing of a group is stored behind one that was refused.`, async (t) => {
    const { transport, queue, subscribe } = await scene(t, server, { kind: 'fifo' })
    const batch = ordered('A1', 'A2', 'A3', 'B1').map((each) =>
      each.id === 'A2' ? { ...each, body: new Uint8Array(2 * 1_048_576) } : each,
    )
    const sent = await transport.send(queue, batch, { signal })
    assert.deepEqual(
      sent.map((each) => (each.ok ? 'stored' : `${each.fault.code} ${each.fault.outcome}`)),
      ['stored', 'tooLarge notApplied', 'tooLarge notApplied', 'stored'],
    )
    const done = await drain(await subscribe(), 2, () => true)
    assert.deepEqual([...done].sort(), ['A1', 'B1'])
  })

  test(`${server.name}: Of a group one message is in hand at a time, however many were received.`, async (t) => {
    const { transport, queue, subscribe } = await scene(t, server, { kind: 'fifo' })
    await transport.send(queue, ordered('A1', 'A2', 'A3', 'B1'), { signal })
    const from = await subscribe()
    assert.deepEqual([...idsOf(await take(from, 2))].sort(), ['A1', 'B1'])
    assert.deepEqual(await receive(from), [])
  })

  test(`${server.name}: What waits in memory stays ours while somebody receives, and goes back in order when its head is lost.`, async (t) => {
    const { transport, queue, subscribe } = await scene(t, server, { kind: 'fifo' })
    await transport.send(queue, ordered('A1', 'A2', 'A3'), { signal })
    const from = await subscribe(2_000)
    const head = await one(from)
    const elsewhere = await subscribe(30_000)
    const stop = new AbortController()
    const waiting = from.receive({ max: 5, waitMs: 20_000, signal: stop.signal })
    // Twice the lease: without renewal the followers would be anybody's, and the group with them.
    const endAt = Date.now() + 4_500
    await until('two leases', async () => {
      const [renewed] = (await from.renew?.([head], 2_000)) ?? []
      assert.deepEqual(renewed, { ok: true })
      assert.deepEqual(await receive(elsewhere), [])
      return Date.now() > endAt
    })
    stop.abort()
    await waiting
    // Nobody renews the head any more.
    const done = await drain(elsewhere, 3, () => true)
    assert.deepEqual(done, ['A1', 'A2', 'A3'])
    const [late] = await from.settle([acked(head)])
    assert.equal(late?.ok === false && late.fault.code, 'lost')
  })

  test(`${server.name}: Messages without an ordering key wait for nobody.`, async (t) => {
    const { transport, queue, subscribe } = await scene(t, server, { kind: 'fifo' })
    await transport.send(queue, [message(), message(), message()], { signal })
    assert.equal((await take(await subscribe(), 3)).length, 3)
  })

  test(`${server.name}: An id that was sent again is stored once; a copy of it is not taken for a repetition.`, async (t) => {
    const { transport, queue, subscribe } = await scene(t, server, { kind: 'fifo' })
    const [sent] = ordered('A1')
    assert.ok(sent)
    for (const each of [sent, sent]) await transport.send(queue, [each], { signal })
    const from = await subscribe()
    assert.deepEqual(await from.settle([acked(await one(from))]), [{ ok: true }])
    assert.deepEqual(await receive(from), [])
    await transport.send(queue, [{ ...sent, copy: 1 }], { signal })
    assert.equal((await one(from)).envelope.id, 'A1')
  })

  test(`${server.name}: A delay for one message is refused as invalid, and so is a moment.`, async (t) => {
    const { transport, queue } = await scene(t, server, { kind: 'fifo' })
    const batch = [message({ delayMs: 1_000 }), message({ readyAt: Date.now() + 1_000 })]
    const sent = await transport.send(queue, batch, { signal })
    assert.deepEqual(
      sent.map((each) => each.ok || each.fault.code),
      ['invalid', 'invalid'],
    )
  })

  test(`${server.name}: Ids and ordering keys that SQS does not take stand as their hash, and stay what they are.`, async (t) => {
    const { transport, queue, subscribe } = await scene(t, server, { kind: 'fifo' })
    const sent = message({ id: 'i'.repeat(255), orderingKey: 'Zürich ☂ '.repeat(30) })
    await transport.send(queue, [sent], { signal })
    const { envelope, lane } = await one(await subscribe())
    assert.equal(envelope.id, sent.id)
    assert.equal(envelope.orderingKey, sent.orderingKey)
    assert.match(lane ?? '', /^sha256-/)
  })

  test(`${server.name}: After a failure in one request nothing later of its group is sent.`, async (t) => {
    const { transport, queue, interfere, subscribe } = await scene(t, server, { kind: 'fifo' })
    const names = Array.from({ length: 11 }, (_, n) => `A${String(n).padStart(2, '0')}`)
    let requests = 0
    interfere(({ action, input }) => {
      if (action !== 'SendMessageBatch') return undefined
      requests += 1
      if (requests > 1 || !Array.isArray(input.Entries)) return undefined
      const Failed = input.Entries.map(({ Id }: { Id: string }) => {
        return { Id, Code: 'InternalError', SenderFault: false }
      })
      return { output: { Failed } }
    })
    const sent = await transport.send(queue, [...ordered(...names), ...ordered('B1')], { signal })
    assert.deepEqual(
      sent.map((each) => each.ok),
      [...names.map(() => false), true],
    )
    const last = sent[10]
    assert.equal(last?.ok === false && last.fault.outcome, 'notApplied')
    assert.deepEqual(idsOf(await take(await subscribe(), 1)), ['B1'])
  })

  test(`${server.name}: A delete that comes too late by the server is lost.`, async (t) => {
    const { transport, queue, interfere, subscribe } = await scene(t, server, { kind: 'fifo' })
    await transport.send(queue, ordered('A1'), { signal })
    const from = await subscribe()
    const delivery = await one(from)
    interfere((call) => {
      if (call.action !== 'DeleteMessageBatch' || !Array.isArray(call.input.Entries)) return
      const Code = 'InvalidParameterValue'
      const Message =
        'Value abc for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.'
      return { output: { Failed: [{ Id: '0', Code, Message, SenderFault: true }] } }
    })
    const [outcome] = await from.settle([acked(delivery)])
    assert.equal(outcome?.ok === false && outcome.fault.code, 'lost')
    assert.equal(delivery.claim.lost.aborted, true)
  })
}
