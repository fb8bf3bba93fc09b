import assert from 'node:assert/strict'
import { present, released } from '../acts.ts'
import type { Family } from '../promise.ts'

export const traits: Family = {
  name: 'traits',
  promises: [
    {
      title: 'Every connection states the same traits, and does not change them.',
      async keep({ near, far, queue, message, send }) {
        const before = structuredClone(near.traits)
        assert.deepEqual(far.traits, before)
        await send(near, await queue(), message())
        assert.deepEqual(near.traits, before)
      },
    },
    {
      title: 'Every connection of one database names the same databaseId.',
      async keep({ near, far }) {
        assert.equal(near.databaseId, far.databaseId)
      },
    },
    {
      title: 'Stated limits are whole numbers of at least 1.',
      async keep({ traits: { limits, priorities } }) {
        for (const limit of [...Object.values(limits), priorities]) {
          assert.ok(Number.isInteger(limit) && limit >= 1, `${limit}`)
        }
      },
    },
    {
      title: 'A lease comes with renewal and a fence.',
      when: ({ traits: { claim } }) => claim.kind === 'lease',
      async keep({ queue, near, message, send, subscribe, one }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        assert.equal(typeof subscription.renew, 'function')
        assert.equal(typeof (await one(subscription)).fence, 'bigint')
      },
    },
    {
      title: 'Native dead letters come with a shelf, and exact capacity with a gauge.',
      async keep({ near, traits: { deadLetters, capacity } }) {
        if (deadLetters === 'native') assert.ok(near.shelf)
        if (capacity === 'exact') assert.ok(near.browse)
      },
    },
    {
      title: 'Deliveries are counted from 1.',
      when: ({ traits: { counts } }) => counts === 'deliveries',
      async keep({ queue, near, far, message, send, subscribe, successor, one, settle, traits }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        const first = await one(subscription)
        assert.equal(first.deliveries, 1)
        await settle(subscription, released(first, { counted: traits.keepsHistory }))
        const again = present((await one(await successor(far, name))).deliveries)
        // Where the backend pushes, the first subscription may have been handed it once more, unasked.
        assert.ok(traits.claim.kind === 'lease' ? again === 2 : again >= 2, `${again}`)
      },
    },
    {
      title:
        'The moment of sending is read from the stated clock, and is the same for every attempt.',
      async keep({
        queue,
        near,
        far,
        message,
        send,
        subscribe,
        successor,
        one,
        settle,
        now,
        passes,
        traits,
      }) {
        const name = await queue()
        const before = now()
        await send(near, name, message())
        const after = now()
        const subscription = await subscribe(near, name)
        const first = await one(subscription)
        // A server's clock may differ from ours; more than a minute is a broken test machine.
        const slackMs = traits.clock === 'server' ? 60_000 : 0
        assert.ok(first.sentAt >= before - slackMs && first.sentAt <= after + slackMs)
        await passes(20)
        await settle(subscription, released(first, { counted: traits.keepsHistory }))
        assert.equal((await one(await successor(far, name))).sentAt, first.sentAt)
      },
    },
    {
      title: 'What is durable outlives every connection.',
      when: ({ traits: { durability } }) => durability !== 'process',
      async keep({ queue, near, far, message, send, connect, subscribe, one }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        await near.close()
        await far.close()
        assert.equal((await one(await subscribe(await connect(), name))).envelope.id, sent.id)
      },
    },
    {
      title: 'Ensuring a queue again, at once from two connections, is harmless.',
      async keep({ queue, near, far, message, send, never, subscribe, one }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        const spec = { name, owner: 'team-new', maxDepth: undefined }
        const both = [near, far].map((transport) => transport.topology.ensure([spec, spec], never))
        await Promise.all(both)
        assert.equal((await one(await subscribe(far, name))).envelope.id, sent.id)
      },
    },
    {
      title: 'A queue that changes hands names its new owner in dead letters.',
      when: ({ transport }) => transport.shelf !== undefined,
      async keep({ queue, near, far, message, send, never, subscribe, one, settle }) {
        const name = await queue({ owner: 'team-old' })
        await near.topology.ensure([{ name, owner: 'team-new', maxDepth: undefined }], never)
        const sent = message()
        await send(near, name, sent)
        const subscription = await subscribe(near, name)
        const delivery = await one(subscription)
        await settle(subscription, { as: 'dead', delivery, reason: 'no', errorClass: 'permanent' })
        assert.equal((await present(far.shelf).get(name, sent.id))?.owner, 'team-new')
      },
    },
  ],
}
