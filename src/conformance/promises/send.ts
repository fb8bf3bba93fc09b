import assert from 'node:assert/strict'
import { codeOf, idsOf } from '../acts.ts'
import type { Family } from '../promise.ts'

export const send: Family = {
  name: 'send',
  promises: [
    {
      title: 'A stored message arrives at another connection with its id, body, headers and keys.',
      async keep({ queue, near, far, message, send: store, subscribe, one }) {
        const name = await queue()
        const sent = message({
          headers: { 'x-trace': 'ä,"1"', 'x-empty': '' },
          idempotencyKey: 'order-7',
          orderingKey: 'customer-3',
        })
        await store(near, name, sent)
        const { envelope } = await one(await subscribe(far, name))
        assert.equal(envelope.id, sent.id)
        assert.deepEqual([...envelope.body], [...sent.body])
        assert.deepEqual({ ...envelope.headers }, { ...sent.headers })
        assert.equal(envelope.idempotencyKey, 'order-7')
        assert.equal(envelope.orderingKey, 'customer-3')
        assert.equal(envelope.priority, 0)
      },
    },
    {
      title: 'A body comes back byte for byte, whatever its bytes, also when it is empty.',
      async keep({ queue, near, far, message, send: store, subscribe, take }) {
        const name = await queue()
        const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)
        const bodies = [everyByte, new Uint8Array(0)]
        const sent = bodies.map((body) => message({ body }))
        await store(near, name, ...sent)
        const deliveries = await take(await subscribe(far, name), 2)
        const byId = new Map(deliveries.map(({ envelope }) => [envelope.id, [...envelope.body]]))
        for (const { id, body } of sent) assert.deepEqual(byId.get(id), [...body])
      },
    },
    {
      title: 'A message that the sender did not give keys to has none.',
      async keep({ queue, near, far, message, send: store, subscribe, one }) {
        const name = await queue()
        await store(near, name, message())
        const { envelope } = await one(await subscribe(far, name))
        assert.equal(envelope.idempotencyKey, undefined)
        assert.equal(envelope.orderingKey, undefined)
      },
    },
    {
      title: 'The same id again stores nothing and is answered as a duplicate.',
      when: ({ traits }) => traits.remembersIds,
      async keep({ queue, near, far, message, send: store, subscribe, take, receive, never }) {
        const name = await queue()
        const sent = message()
        await store(near, name, sent)
        const [again] = await far.send(name, [sent], { signal: never })
        assert.deepEqual(again, { ok: true, id: sent.id, duplicate: true })
        const subscription = await subscribe(far, name)
        assert.deepEqual(idsOf(await take(subscription, 1)), [sent.id])
        assert.deepEqual(await receive(subscription), [])
      },
    },
    {
      title: 'An id that is in flight or dead still counts as stored.',
      when: ({ traits }) => traits.remembersIds && traits.deadLetters === 'native',
      async keep({ queue, near, far, message, send: store, subscribe, one, settle, never }) {
        const name = await queue()
        const sent = message()
        await store(near, name, sent)
        const subscription = await subscribe(near, name)
        const delivery = await one(subscription)
        const [inFlight] = await far.send(name, [sent], { signal: never })
        assert.equal(inFlight && codeOf(inFlight), 'duplicate')
        await settle(subscription, {
          as: 'dead',
          delivery,
          reason: 'no',
          errorClass: 'permanent',
        })
        const [dead] = await far.send(name, [sent], { signal: never })
        assert.equal(dead && codeOf(dead), 'duplicate')
      },
    },
    {
      title: 'Messages of one queue never arrive at another.',
      async keep({ queue, near, far, message, send: store, subscribe, take, receive }) {
        const [red, blue] = [await queue(), await queue()]
        const [toRed, toBlue] = [message(), message()]
        await store(near, red, toRed)
        await store(near, blue, toBlue)
        const subscription = await subscribe(far, red)
        assert.deepEqual(idsOf(await take(subscription, 1)), [toRed.id])
        assert.deepEqual(await receive(subscription), [])
      },
    },
    {
      title: 'A queue that was never ensured is refused: notFound, and nothing is stored.',
      async keep({ near, message, never, random }) {
        const name = `never-ensured-${Math.floor(random() * 1e9).toString(36)}`
        const code = await near.send(name, [message()], { signal: never }).then(
          ([sent]) => sent && codeOf(sent),
          (error: unknown) => near.diagnose(error).code,
        )
        assert.equal(code, 'notFound')
      },
    },
    {
      title: 'Headers, ids and keys are data, whatever characters they hold.',
      async keep({ queue, near, far, message, send: store, subscribe, take }) {
        const name = await queue()
        const nasty = `x';DROP--"$1"%_\\{{7*7}}`
        const sent = message({ id: nasty, idempotencyKey: nasty, headers: { [nasty]: nasty } })
        const neighbour = message()
        await store(near, name, sent, neighbour)
        const deliveries = await take(await subscribe(far, name), 2)
        const arrived = deliveries.find(({ envelope }) => envelope.id === nasty)?.envelope
        assert.equal(arrived?.idempotencyKey, nasty)
        assert.equal(arrived?.headers[nasty], nasty)
      },
    },
  ],
}
