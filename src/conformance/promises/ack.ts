import assert from 'node:assert/strict'
import { acked, assertAllOk, assertGauge, assertLost, codeOf, present } from '../acts.ts'
import type { Family } from '../promise.ts'

export const ack: Family = {
  name: 'ack',
  promises: [
    {
      title: 'An acked message is gone for good, also after its lease would have ended.',
      async keep({
        queue,
        near,
        far,
        message,
        send,
        subscribe,
        subscribeShortly,
        one,
        settle,
        leaseRunsOut,
        receive,
      }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribeShortly(near, name)
        assertAllOk(await settle(subscription, acked(await one(subscription))))
        const elsewhere = await subscribe(far, name)
        assert.deepEqual(await receive(elsewhere), [])
        await leaseRunsOut()
        assert.deepEqual(await receive(elsewhere), [])
      },
    },
    {
      title: 'An acked message leaves nothing behind in the numbers.',
      when: ({ transport }) => transport.browse !== undefined,
      async keep({ queue, near, far, message, send, subscribe, one, settle }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        const subscription = await subscribe(near, name)
        assertAllOk(await settle(subscription, acked(await one(subscription))))
        const gauge = await present(far.browse).gauge(name)
        assertGauge(gauge, { depth: 0, inFlight: 0, scheduled: 0 })
        const look = far.browse?.get
        if (look) assert.equal(await look(name, sent.id), undefined)
      },
    },
    {
      title: 'A second ack of the same delivery answers lost.',
      async keep({ queue, near, message, send, subscribe, one, settle }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        const delivery = await one(subscription)
        assertAllOk(await settle(subscription, acked(delivery)))
        const [again] = await settle(subscription, acked(delivery))
        assertLost(again)
      },
    },
    {
      title: 'A batch is settled item by item, and a lost one spoils no other.',
      async keep({ queue, near, message, send, subscribe, take, settle }) {
        const name = await queue()
        await send(near, name, message(), message(), message())
        const subscription = await subscribe(near, name)
        const [first, second, third] = await take(subscription, 3)
        assert.ok(first && second && third)
        assertAllOk(await settle(subscription, acked(second)))
        const outcomes = await settle(subscription, acked(first), acked(second), acked(third))
        assert.deepEqual(outcomes.map(codeOf), ['ok', 'lost', 'ok'])
      },
    },
    {
      title: 'An empty batch settles to nothing.',
      async keep({ queue, near, subscribe, settle }) {
        assert.deepEqual(await settle(await subscribe(near, await queue())), [])
      },
    },
  ],
}
