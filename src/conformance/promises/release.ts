import assert from 'node:assert/strict'
import { assertAllOk, failedAttempt, present, released } from '../acts.ts'
import type { Family } from '../promise.ts'

const DELAY_MS = 600

export const release: Family = {
  name: 'release',
  promises: [
    {
      title: 'A message released without delay comes back at once, to anybody.',
      when: ({ traits }) => traits.release !== 'none',
      async keep({ queue, near, far, message, send, subscribe, successor, one, settle, traits }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        const subscription = await subscribe(near, name, { leaseMs: 60_000 })
        const delivery = await one(subscription)
        assertAllOk(
          await settle(subscription, released(delivery, { counted: traits.keepsHistory })),
        )
        assert.equal((await one(await successor(far, name))).envelope.id, sent.id)
      },
    },
    {
      title: 'A message released with a delay comes back when it has passed and not before.',
      when: ({ traits }) => traits.release === 'delayed',
      async keep({
        queue,
        near,
        far,
        message,
        send,
        subscribe,
        one,
        settle,
        receive,
        now,
        traits,
      }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        const counted = traits.keepsHistory
        const act = released(await one(subscription), { counted, delayMs: DELAY_MS })
        const releasedAt = now()
        assertAllOk(await settle(subscription, act))
        // A lane that has one reader comes back to it.
        const isShared = traits.claim.kind !== 'assignment'
        const elsewhere = isShared ? await subscribe(far, name) : subscription
        assert.deepEqual(await receive(elsewhere), [])
        await one(elsewhere)
        // The server's clock and ours run side by side; a few ms are theirs.
        assert.ok(now() - releasedAt >= DELAY_MS - 20, `came after ${now() - releasedAt} ms`)
      },
    },
    {
      title: 'A receive that waits is woken when a release falls due.',
      when: ({ traits }) => traits.release === 'delayed',
      async keep({
        queue,
        near,
        far,
        message,
        send,
        subscribe,
        one,
        settle,
        settles,
        never,
        traits,
      }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        const delivery = await one(subscription)
        // A lane that has one reader comes back to it.
        const isShared = traits.claim.kind !== 'assignment'
        const elsewhere = isShared ? await subscribe(far, name) : subscription
        const waiting = elsewhere.receive({ max: 1, waitMs: 60_000, signal: never })
        const counted = traits.keepsHistory
        await settle(subscription, released(delivery, { counted, delayMs: 200 }))
        assert.equal((await settles('the wake-up', waiting, 5_000)).length, 1)
      },
    },
    {
      title: 'A counted release raises the count of attempts by one.',
      when: ({ traits }) => traits.release !== 'none' && traits.keepsHistory,
      async keep({ queue, near, far, message, send, subscribe, successor, one, settle }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        const first = await one(subscription)
        assert.equal(first.history.counted, 0)
        await settle(subscription, released(first, { counted: true }))
        const elsewhere = await successor(far, name)
        const second = await one(elsewhere)
        assert.equal(second.history.counted, 1)
        await settle(elsewhere, released(second, { counted: true }))
        assert.equal((await one(await successor(near, name))).history.counted, 2)
      },
    },
    {
      title: 'An uncounted release leaves the count of attempts as it was.',
      when: ({ traits }) => traits.uncountedRelease && traits.keepsHistory,
      async keep({ queue, near, far, message, send, subscribe, successor, one, settle }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        await settle(subscription, released(await one(subscription), { counted: true }))
        await settle(subscription, released(await one(subscription), { counted: false }))
        const { history } = await one(await successor(far, name))
        assert.equal(history.counted, 1)
        assert.equal(history.crashes, 0)
      },
    },
    {
      title: 'The record of a failed attempt is kept with the message, word for word.',
      when: ({ traits }) => traits.release !== 'none' && traits.keepsHistory,
      async keep({ queue, near, far, message, send, subscribe, successor, one, settle }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        const first = failedAttempt({ stack: 'Error: no\n    at there' })
        const second = failedAttempt({ code: 'ECONNRESET', at: first.at + 1 })
        await settle(
          subscription,
          released(await one(subscription), { counted: true, attempt: first }),
        )
        const again = await one(subscription)
        await settle(subscription, released(again, { counted: false, attempt: second }))
        const { history } = await one(await successor(far, name))
        assert.deepEqual(history.records, [first, second])
      },
    },
    {
      title:
        'The moment of the first throttled attempt is remembered, and no later one replaces it.',
      when: ({ traits }) => traits.uncountedRelease && traits.keepsHistory,
      async keep({ queue, near, far, message, send, subscribe, successor, one, settle }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        for (const at of [1_767_225_600_500, 1_767_225_700_000]) {
          const attempt = failedAttempt({ at, errorClass: 'throttled', code: 'HTTP_429' })
          await settle(subscription, released(await one(subscription), { counted: false, attempt }))
        }
        const { history } = await one(await successor(far, name))
        assert.equal(history.throttledSince, 1_767_225_600_500)
      },
    },
    {
      title: 'A released message waits as scheduled, with its count, until it is due.',
      when: ({ traits, transport }) =>
        traits.release === 'delayed' && traits.keepsHistory && transport.browse?.get !== undefined,
      async keep({ queue, near, far, message, send, subscribe, one, settle }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        const subscription = await subscribe(near, name)
        await settle(
          subscription,
          released(await one(subscription), { counted: true, delayMs: 3_600_000 }),
        )
        const stored = await present(far.browse?.get)(name, sent.id)
        assert.equal(stored?.state, 'scheduled')
        assert.equal(stored?.history.counted, 1)
      },
    },
  ],
}
