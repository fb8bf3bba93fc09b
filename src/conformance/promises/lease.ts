import assert from 'node:assert/strict'
import { acked, assertAllOk, assertLost, died, idsOf, present, released } from '../acts.ts'
import type { Family, Subject } from '../promise.ts'

const leased = ({ traits }: Subject): boolean => traits.claim.kind === 'lease'

export const lease: Family = {
  name: 'lease',
  promises: [
    {
      title: 'While its lease lasts, nobody else receives a message.',
      when: leased,
      async keep({ queue, near, far, message, send, subscribe, one, receive }) {
        const name = await queue()
        await send(near, name, message())
        await one(await subscribe(near, name, { leaseMs: 60_000 }))
        assert.deepEqual(await receive(await subscribe(far, name)), [])
      },
    },
    {
      title: 'A message whose lease has run out comes back, to anybody.',
      when: leased,
      async keep({
        queue,
        near,
        far,
        message,
        send,
        subscribe,
        subscribeShortly,
        one,
        leaseRunsOut,
      }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        await one(await subscribeShortly(near, name))
        await leaseRunsOut()
        assert.equal((await one(await subscribe(far, name))).envelope.id, sent.id)
      },
    },
    {
      title: 'A receive that waits is woken when a lease runs out.',
      when: leased,
      async keep({
        queue,
        near,
        far,
        message,
        send,
        subscribe,
        subscribeShortly,
        one,
        settles,
        never,
        harness,
      }) {
        const name = await queue()
        await send(near, name, message())
        await one(await subscribeShortly(near, name))
        const elsewhere = await subscribe(far, name)
        const waiting = elsewhere.receive({ max: 1, waitMs: 120_000, signal: never })
        const back = await settles('the message', waiting, harness.leaseMs + 10_000)
        assert.equal(back.length, 1)
      },
    },
    {
      title: 'Renewal keeps exactly the renewed messages, and no other.',
      when: leased,
      async keep({
        queue,
        near,
        far,
        message,
        send,
        subscribe,
        subscribeShortly,
        take,
        leaseRunsOut,
        receive,
        settle,
      }) {
        const name = await queue()
        await send(near, name, message(), message())
        const subscription = await subscribeShortly(near, name)
        const [kept, left] = await take(subscription, 2)
        assert.ok(kept && left)
        assertAllOk(await present(subscription.renew)([kept], 120_000))
        await leaseRunsOut()
        const elsewhere = await subscribe(far, name)
        assert.deepEqual(idsOf(await take(elsewhere, 1)), [left.envelope.id])
        assert.deepEqual(await receive(elsewhere), [])
        assertAllOk(await settle(subscription, acked(kept)))
      },
    },
    {
      title: 'Renewal counts from now: it does not add to what was left.',
      when: leased,
      async keep({ queue, near, far, message, send, subscribe, one, leaseRunsOut, harness }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        const subscription = await subscribe(near, name, { leaseMs: 120_000 })
        const delivery = await one(subscription)
        assertAllOk(await present(subscription.renew)([delivery], harness.leaseMs))
        await leaseRunsOut()
        assert.equal((await one(await subscribe(far, name))).envelope.id, sent.id)
      },
    },
    {
      title: 'Renewing what another has taken answers lost, fires claim.lost and spoils no other.',
      when: leased,
      async keep({
        queue,
        near,
        far,
        message,
        send,
        subscribe,
        subscribeShortly,
        take,
        one,
        leaseRunsOut,
      }) {
        const name = await queue()
        await send(near, name, message(), message())
        const subscription = await subscribeShortly(near, name)
        const [mine, theirs] = await take(subscription, 2)
        assert.ok(mine && theirs)
        assertAllOk(await present(subscription.renew)([mine], 120_000))
        await leaseRunsOut()
        await one(await subscribe(far, name))
        const [kept, lost] = await present(subscription.renew)([mine, theirs], 120_000)
        assert.equal(kept?.ok, true)
        assertLost(lost)
        assert.equal(theirs.claim.lost.aborted, true)
        assert.equal(mine.claim.lost.aborted, false)
      },
    },
    {
      title: 'Settling what another has taken answers lost and changes nothing.',
      when: leased,
      async keep({
        queue,
        near,
        far,
        message,
        send,
        subscribe,
        subscribeShortly,
        one,
        leaseRunsOut,
        settle,
        receive,
        traits,
      }) {
        const name = await queue()
        await send(near, name, message())
        const zombie = await subscribeShortly(near, name)
        const late = await one(zombie)
        await leaseRunsOut()
        const heir = await subscribe(far, name, { leaseMs: 120_000 })
        const theirs = await one(heir)
        const acts = [acked(late), released(late, { counted: traits.keepsHistory })]
        if (traits.deadLetters === 'native') acts.push(died(late))
        for (const act of acts) {
          const [outcome] = await settle(zombie, act)
          assertLost(outcome)
        }
        assert.deepEqual(await receive(zombie), [])
        assertAllOk(await settle(heir, acked(theirs)))
      },
    },
    {
      title: 'What a zombie settles late leaves no trace in the history and on the shelf.',
      when: (subject) => leased(subject) && subject.traits.keepsHistory,
      async keep({
        queue,
        near,
        far,
        message,
        send,
        subscribe,
        subscribeShortly,
        one,
        leaseRunsOut,
        settle,
      }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        const zombie = await subscribeShortly(near, name)
        const late = await one(zombie)
        await leaseRunsOut()
        const heir = await subscribe(far, name)
        const theirs = await one(heir)
        await settle(zombie, released(late, { counted: true, delayMs: 3_600_000 }), died(late))
        assertAllOk(await settle(heir, released(theirs, { counted: false })))
        assert.deepEqual((await one(heir)).history, theirs.history)
        assert.equal(await far.shelf?.get(name, sent.id), undefined)
      },
    },
    {
      title: 'The fence grows with each handing out.',
      when: leased,
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
        traits,
      }) {
        const name = await queue()
        await send(near, name, message())
        const here = await subscribe(near, name)
        const there = await subscribeShortly(far, name)
        const first = await one(here)
        await settle(here, released(first, { counted: traits.keepsHistory }))
        const second = await one(there)
        await leaseRunsOut()
        const third = await one(here)
        const fences = [first, second, third].map((delivery) => present(delivery.fence))
        assert.ok(
          fences.every((fence, at) => at === 0 || fence > (fences[at - 1] ?? fence)),
          `fences were ${fences}`,
        )
      },
    },
    {
      title: 'A claim says when it ends, and is not lost while it lasts.',
      when: leased,
      async keep({ queue, near, message, send, subscribe, one, now }) {
        const name = await queue()
        await send(near, name, message())
        const { claim } = await one(await subscribe(near, name, { leaseMs: 60_000 }))
        const leftMs = present(claim.expiresAt) - now()
        assert.ok(leftMs > 50_000 && leftMs <= 61_000, `ends in ${leftMs} ms`)
        assert.equal(claim.lost.aborted, false)
        assert.equal(claim.ending.aborted, false)
      },
    },
  ],
}
