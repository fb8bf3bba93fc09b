import assert from 'node:assert/strict'
import type { Family } from '../promise.ts'

export const send: Family = {
  name: 'send',
  promises: [
    {
      title: 'A stored message arrives at another connection with its id, body, headers and keys.',
      async keep({ queue, near, far, message, send: store, subscribe, one }) {
        const name = await queue()
        const sent = message({ headers: { 'x-trace': 'ä,"1"' }, idempotencyKey: 'order-7', priority: 3 })
        await store(near, name, sent)
        const delivery = await one(await subscribe(far, name))
        assert.equal(delivery.envelope.id, sent.id)
        assert.deepEqual([...delivery.envelope.body], [...sent.body])
        assert.deepEqual({ ...delivery.envelope.headers }, { ...sent.headers })
        assert.equal(delivery.envelope.idempotencyKey, 'order-7')
        assert.equal(delivery.envelope.priority, 3)
      },
    },
  ],
}
