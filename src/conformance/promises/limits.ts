import assert from 'node:assert/strict'
import { codeOf, present } from '../acts.ts'
import type { Family } from '../promise.ts'

export const limits: Family = {
  name: 'limits',
  promises: [
    {
      title: 'A body at the stated limit is stored and comes back whole.',
      async keep({ queue, near, far, message, send, subscribe, one, traits }) {
        const name = await queue()
        // Text, as all payloads are: some backends carry other bytes at a price.
        const body = new Uint8Array(traits.limits.bodyBytes).fill(0x37)
        body[body.length - 1] = 0x39
        await send(near, name, message({ body }))
        // Large bodies take their time; the lease must not end while this one travels.
        const { envelope } = await one(await subscribe(far, name, { leaseMs: 60_000 }))
        assert.equal(envelope.body.byteLength, body.byteLength)
        assert.equal(Buffer.compare(envelope.body, body), 0)
      },
    },
    {
      title: 'A body one byte above the limit is refused as tooLarge, and nothing is stored.',
      async keep({ queue, near, far, message, subscribe, receive, never, traits }) {
        const name = await queue()
        const body = new Uint8Array(traits.limits.bodyBytes + 1)
        const [sent] = await near.send(name, [message({ body })], { signal: never })
        assert.ok(sent && !sent.ok)
        assert.equal(sent.fault.code, 'tooLarge')
        assert.equal(sent.fault.retryable, false)
        assert.equal(sent.fault.outcome, 'notApplied')
        assert.deepEqual(await receive(await subscribe(far, name)), [])
      },
    },
    {
      title: 'A batch at the stated limits is sent, received and settled.',
      async keep({ queue, near, far, message, send, subscribe, take, settle, traits, depth }) {
        const name = await queue()
        const cap = depth === 'full' ? 100_000 : 2_000
        const { receiveBatch, sendBatch, settleBatch } = traits.limits
        const size = Math.min(sendBatch, cap)
        await send(near, name, ...Array.from({ length: size }, () => message()))
        const subscription = await subscribe(far, name, { leaseMs: 120_000 })
        const wanted = Math.min(receiveBatch, settleBatch, size)
        const deliveries = await take(subscription, wanted)
        const outcomes = await settle(
          subscription,
          ...deliveries.map((delivery) => ({ as: 'acked', delivery }) as const),
        )
        assert.ok(outcomes.every((outcome) => outcome.ok))
        assert.equal(outcomes.length, wanted)
      },
    },
    {
      title: 'An id and keys of 255 characters are stored as they are.',
      async keep({ queue, near, far, message, send, subscribe, one }) {
        const name = await queue()
        const long = 'k'.repeat(255)
        const sent = message({ id: `${'i'.repeat(254)}${near.name[0]}`, idempotencyKey: long })
        await send(near, name, sent)
        const { envelope } = await one(await subscribe(far, name))
        assert.equal(envelope.id, sent.id)
        assert.equal(envelope.idempotencyKey, long)
      },
    },
    {
      title: 'Every priority that the transport states is taken.',
      async keep({ queue, near, message, never, traits }) {
        const name = await queue()
        const items = Array.from({ length: traits.priorities }, (_, priority) =>
          message({ priority }),
        )
        const sent = await near.send(name, items, { signal: never })
        assert.deepEqual(
          sent.map(codeOf),
          items.map(() => 'ok'),
        )
      },
    },
    {
      title: 'The longest lease that the transport states is taken.',
      when: ({ traits }) => traits.claim.kind === 'lease',
      async keep({ queue, near, message, send, subscribe, one, traits }) {
        const name = await queue()
        await send(near, name, message())
        const maxMs = traits.claim.kind === 'lease' ? traits.claim.maxMs : 0
        const subscription = await subscribe(near, name, { leaseMs: maxMs })
        const delivery = await one(subscription)
        const [renewed] = await present(subscription.renew)([delivery], maxMs)
        assert.equal(renewed?.ok, true)
      },
    },
  ],
}
