import assert from 'node:assert/strict'
import { codeOf, released } from '../acts.ts'
import type { Family } from '../promise.ts'

/**
 * What is missing must be refused, not ignored: silence would be a broken promise that nobody sees.
 */
export const absences: Family = {
  name: 'absences',
  promises: [
    {
      title: 'A transport without delays refuses a delayed message as invalid.',
      when: ({ traits }) => traits.delay === 'none',
      async keep({ queue, near, far, message, subscribe, receive, never }) {
        const name = await queue()
        const [sent] = await near.send(name, [message({ delayMs: 1_000 })], { signal: never })
        assert.equal(sent && codeOf(sent), 'invalid')
        assert.deepEqual(await receive(await subscribe(far, name)), [])
      },
    },
    {
      title: 'A delayed message that would leave the order of its key is refused as invalid.',
      when: ({ traits }) => traits.delayLeavesOrder === true,
      async keep({ queue, near, far, message, subscribe, receive, never, now }) {
        const name = await queue()
        const keyed = { orderingKey: 'k' }
        const batch = [
          message({ ...keyed, delayMs: 300 }),
          message({ ...keyed, readyAt: now() + 300 }),
        ]
        const sent = await near.send(name, batch, { signal: never })
        assert.deepEqual(sent.map(codeOf), ['invalid', 'invalid'])
        assert.deepEqual(await receive(await subscribe(far, name)), [])
      },
    },
    {
      title: 'A transport without fairness refuses a fair key as invalid.',
      when: ({ traits }) => traits.fairness === undefined,
      async keep({ queue, near, far, message, subscribe, receive, never }) {
        const name = await queue()
        const [sent] = await near.send(name, [message({ fairKey: 'tenant' })], { signal: never })
        assert.equal(sent && codeOf(sent), 'invalid')
        assert.deepEqual(await receive(await subscribe(far, name)), [])
      },
    },
    {
      title: 'A transport without dedupe refuses keys to remember as invalid.',
      when: ({ traits }) => traits.dedupe === 'none',
      async keep({ queue, near, far, message, subscribe, receive, never }) {
        const name = await queue()
        const remember = [
          { kind: 'dedupe', key: 'k', fingerprint: undefined, windowMs: 1_000 },
        ] as const
        const [sent] = await near.send(name, [message({ remember })], { signal: never })
        assert.equal(sent && codeOf(sent), 'invalid')
        assert.deepEqual(await receive(await subscribe(far, name)), [])
      },
    },
    {
      title:
        'A transport that cannot release refuses it as invalid, and the holder keeps the message.',
      when: ({ traits }) => traits.release === 'none',
      async keep({ queue, near, message, send, subscribe, one, settle }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        const [outcome] = await settle(
          subscription,
          released(await one(subscription), { counted: true }),
        )
        assert.equal(outcome && codeOf(outcome), 'invalid')
      },
    },
    {
      title: 'A transport that releases only at once refuses a delay as invalid.',
      when: ({ traits }) => traits.release === 'immediate',
      async keep({ queue, near, message, send, subscribe, one, settle }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        const act = released(await one(subscription), { counted: true, delayMs: 1_000 })
        const [outcome] = await settle(subscription, act)
        assert.equal(outcome && codeOf(outcome), 'invalid')
      },
    },
    {
      title: 'A transport without dead letters refuses a death as invalid and keeps the message.',
      when: ({ traits }) => traits.deadLetters === 'none',
      async keep({ queue, near, message, send, subscribe, one, settle }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        const delivery = await one(subscription)
        const [outcome] = await settle(subscription, {
          as: 'dead',
          delivery,
          reason: 'no',
          errorClass: 'permanent',
        })
        assert.equal(outcome && codeOf(outcome), 'invalid')
      },
    },
    {
      title: 'A transport without atomic batches refuses one as invalid.',
      when: ({ traits }) => !traits.atomicBatch,
      async keep({ queue, near, message, never }) {
        const name = await queue()
        const sent = await near.send(name, [message(), message()], { signal: never, atomic: true })
        assert.deepEqual(sent.map(codeOf), ['invalid', 'invalid'])
      },
    },
  ],
}
