import assert from 'node:assert/strict'
import { acked, assertAllOk, codeOf, present, released } from '../acts.ts'
import { DEFAULT_OWNER } from '../harness.ts'
import type { Family, Subject } from '../promise.ts'

const exact = ({ traits }: Subject): boolean => traits.capacity === 'exact'

export const capacity: Family = {
  name: 'capacity',
  promises: [
    {
      title: 'A queue is full when ready, scheduled and in flight together reach its limit.',
      when: exact,
      async keep({ queue, near, far, message, send, subscribe, one, never }) {
        const name = await queue({ maxDepth: 3 })
        await send(near, name, message())
        await one(await subscribe(near, name, { leaseMs: 60_000 }))
        await send(near, name, message({ delayMs: 3_600_000 }), message())
        const [sent] = await far.send(name, [message()], { signal: never })
        assert.ok(sent && !sent.ok)
        assert.equal(sent.fault.code, 'full')
        assert.equal(sent.fault.retryable, true)
        assert.equal(sent.fault.outcome, 'notApplied')
      },
    },
    {
      title: 'An ack makes room.',
      when: exact,
      async keep({ queue, near, far, message, send, subscribe, one, settle, never }) {
        const name = await queue({ maxDepth: 1 })
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        assertAllOk(await settle(subscription, acked(await one(subscription))))
        const [sent] = await far.send(name, [message()], { signal: never })
        assert.equal(sent && codeOf(sent), 'ok')
      },
    },
    {
      title:
        'Of a batch that does not fit, as many are stored as there is room for, the first ones.',
      when: exact,
      async keep({ queue, near, message, never }) {
        const name = await queue({ maxDepth: 2 })
        const sent = await near.send(name, [message(), message(), message()], { signal: never })
        assert.deepEqual(sent.map(codeOf), ['ok', 'ok', 'full'])
      },
    },
    {
      title: 'A duplicate is answered as one even when the queue is full.',
      when: exact,
      async keep({ queue, near, far, message, send, never }) {
        const name = await queue({ maxDepth: 1 })
        const first = message()
        await send(near, name, first)
        const [sent] = await far.send(name, [first], { signal: never })
        assert.equal(sent && codeOf(sent), 'duplicate')
      },
    },
    {
      title: 'Concurrent senders on two connections never overshoot the limit.',
      when: (subject) => exact(subject) && subject.transport.browse !== undefined,
      async keep({ queue, near, far, message, never, settles }) {
        const name = await queue({ maxDepth: 10 })
        const sends = Array.from({ length: 30 }, (_, at) =>
          (at % 2 === 0 ? near : far).send(name, [message()], { signal: never }),
        )
        const sent = (await settles('thirty sends', Promise.all(sends))).flat()
        assert.equal(sent.filter((outcome) => outcome.ok).length, 10)
        assert.equal((await present(far.browse).gauge(name)).depth, 10)
      },
    },
    {
      title: 'A release is never refused, however full the queue is.',
      when: (subject) => subject.traits.release !== 'none',
      async keep({ queue, near, far, message, send, subscribe, successor, one, settle, traits }) {
        const name = await queue({ maxDepth: 1 })
        const sent = message()
        await send(near, name, sent)
        const subscription = await subscribe(near, name)
        const delivery = await one(subscription)
        assertAllOk(
          await settle(subscription, released(delivery, { counted: traits.keepsHistory })),
        )
        assert.equal((await one(await successor(far, name))).envelope.id, sent.id)
      },
    },
    {
      title: 'A limit that was raised is in force at once, for every connection.',
      when: exact,
      async keep({ queue, near, far, message, send, never }) {
        const name = await queue({ maxDepth: 1 })
        await send(near, name, message())
        const spec = { name, owner: DEFAULT_OWNER, maxDepth: undefined }
        await near.topology.ensure([spec], never)
        const [sent] = await far.send(name, [message()], { signal: never })
        assert.equal(sent && codeOf(sent), 'ok')
      },
    },
  ],
}
