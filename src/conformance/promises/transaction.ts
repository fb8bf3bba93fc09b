import assert from 'node:assert/strict'
import type { Transaction, Transport } from '../../transport/transport.ts'
import { acked, assertAllOk, assertGauge, assertLost, codeOf, present } from '../acts.ts'
import type { Family, Subject } from '../promise.ts'

const transactional = ({ transport }: Subject): boolean => transport.transaction !== undefined
const leased = (subject: Subject): boolean =>
  transactional(subject) && subject.traits.claim.kind === 'lease'

async function within(transport: Transport, tx: unknown): Promise<Transaction> {
  const transaction = await present(transport.transaction)(tx)
  assert.ok(transaction, 'the transport does not recognise the transaction of its own database')
  return transaction
}

export const transaction: Family = {
  name: 'transactions',
  promises: [
    {
      title: "A message sent in the user's transaction is there when it commits, and not before.",
      when: transactional,
      async keep({ queue, near, far, message, begin, subscribe, one, settles }) {
        const name = await queue()
        const user = await begin()
        const sent = message({ idempotencyKey: 'k' })
        const outcomes = await (await within(near, user.tx)).send(name, [sent])
        assert.deepEqual(outcomes.map(codeOf), ['ok'])
        const look = far.browse?.get
        if (look) {
          const before = await settles('a look from elsewhere', look(name, sent.id))
          assert.equal(before, undefined)
        }
        await user.commit()
        const { envelope } = await one(await subscribe(far, name))
        assert.equal(envelope.id, sent.id)
        assert.equal(envelope.idempotencyKey, 'k')
      },
    },
    {
      title: 'A receive that waits is woken by a transaction that commits.',
      when: transactional,
      async keep({ queue, near, far, message, begin, subscribe, settles, passes, never }) {
        const name = await queue()
        const subscription = await subscribe(far, name)
        const waiting = subscription.receive({ max: 1, waitMs: 60_000, signal: never })
        await passes(30)
        const user = await begin()
        await (await within(near, user.tx)).send(name, [message()])
        await user.commit()
        assert.equal((await settles('the wake-up', waiting, 10_000)).length, 1)
      },
    },
    {
      title: 'A message sent in a transaction that is rolled back was never there.',
      when: transactional,
      async keep({ queue, near, far, message, begin, subscribe, receive, never }) {
        const name = await queue()
        const user = await begin()
        const sent = message()
        await (await within(near, user.tx)).send(name, [sent])
        await user.rollback()
        assert.deepEqual(await receive(await subscribe(far, name)), [])
        const [again] = await far.send(name, [sent], { signal: never })
        assert.equal(again && codeOf(again), 'ok')
      },
    },
    {
      title: 'A key of a message that was rolled back is not remembered, one that committed is.',
      when: (subject) => transactional(subject) && subject.traits.dedupe !== 'none',
      async keep({ queue, near, far, message, begin, never }) {
        const name = await queue()
        const remember = [
          { kind: 'idempotency', key: 'k', fingerprint: 'f', windowMs: 3_600_000 },
        ] as const
        const undone = await begin()
        await (await within(near, undone.tx)).send(name, [message({ remember })])
        await undone.rollback()
        const done = await begin()
        const sent = await (await within(near, done.tx)).send(name, [message({ remember })])
        assert.deepEqual(sent.map(codeOf), ['ok'])
        await done.commit()
        const [again] = await far.send(name, [message({ remember })], { signal: never })
        assert.equal(again && codeOf(again), 'duplicate')
      },
    },
    {
      title: 'A bad item does not break the transaction around it.',
      when: transactional,
      async keep({ queue, near, far, message, send, begin, subscribe, take, traits }) {
        const name = await queue()
        const known = message()
        await send(near, name, known)
        const user = await begin()
        const tooLarge = message({ body: new Uint8Array(traits.limits.bodyBytes + 1) })
        const inside = await within(near, user.tx)
        const sent = await inside.send(name, [known, tooLarge, message()])
        assert.deepEqual(sent.map(codeOf), ['duplicate', 'tooLarge', 'ok'])
        await user.commit()
        assert.equal((await take(await subscribe(far, name), 2)).length, 2)
      },
    },
    {
      title: 'An ack in a transaction that commits settles the message.',
      when: leased,
      async keep({ queue, near, far, message, send, begin, subscribe, one, settle, receive }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        const delivery = await one(subscription)
        const user = await begin()
        assertAllOk(await (await within(near, user.tx)).ack(name, [delivery]))
        await user.commit()
        const [again] = await settle(subscription, acked(delivery))
        assertLost(again)
        const left = await far.browse?.gauge(name)
        if (left !== undefined) assertGauge(left, { depth: 0, inFlight: 0, scheduled: 0 })
        assert.deepEqual(await receive(await subscribe(far, name)), [])
      },
    },
    {
      title: 'An ack in a transaction that is rolled back leaves the message with its holder.',
      when: leased,
      async keep({ queue, near, message, send, begin, subscribe, one, settle }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name, { leaseMs: 60_000 })
        const delivery = await one(subscription)
        const user = await begin()
        assertAllOk(await (await within(near, user.tx)).ack(name, [delivery]))
        await user.rollback()
        assertAllOk(await settle(subscription, acked(delivery)))
      },
    },
    {
      title: 'A send and an ack in one transaction happen together or not at all.',
      when: leased,
      async keep({ queue, near, far, message, send, begin, subscribe, one, receive }) {
        const [source, target] = [await queue(), await queue()]
        await send(near, source, message())
        const subscription = await subscribe(near, source, { leaseMs: 60_000 })
        const delivery = await one(subscription)
        const follower = message()
        const arrivals = await subscribe(far, target)
        for (const end of ['rollback', 'commit'] as const) {
          assert.deepEqual(await receive(arrivals), [])
          const user = await begin()
          const inside = await within(near, user.tx)
          assert.deepEqual((await inside.send(target, [follower])).map(codeOf), ['ok'])
          assertAllOk(await inside.ack(source, [delivery]))
          await user[end]()
        }
        assert.equal((await one(arrivals)).envelope.id, follower.id)
      },
    },
    {
      title: 'An ack in a transaction after the lease has ended answers lost.',
      when: leased,
      async keep({
        queue,
        near,
        far,
        message,
        send,
        begin,
        subscribe,
        subscribeShortly,
        one,
        leaseRunsOut,
        settles,
      }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        const delivery = await one(await subscribeShortly(near, name))
        // Begun in time: what counts is the moment of the ack, by the store's clock.
        const user = await begin()
        const inside = await within(near, user.tx)
        await leaseRunsOut()
        const acks = Promise.resolve(inside.ack(name, [delivery]))
        const [outcome] = await settles('the late ack', acks)
        assertLost(outcome)
        await user.rollback()
        assert.equal((await one(await subscribe(far, name))).envelope.id, sent.id)
      },
    },
    {
      title:
        'An ack in a transaction of what another has taken answers lost, and the other keeps it.',
      when: leased,
      async keep({
        queue,
        near,
        far,
        message,
        send,
        begin,
        subscribe,
        subscribeShortly,
        one,
        leaseRunsOut,
        settle,
      }) {
        const name = await queue()
        await send(near, name, message())
        const late = await one(await subscribeShortly(near, name))
        await leaseRunsOut()
        const heir = await subscribe(far, name, { leaseMs: 60_000 })
        const theirs = await one(heir)
        const user = await begin()
        const [outcome] = await (await within(near, user.tx)).ack(name, [late])
        assertLost(outcome)
        await user.commit()
        assertAllOk(await settle(heir, acked(theirs)))
      },
    },
    {
      title: 'An atomic batch with a conflict leaves nothing in the transaction, which goes on.',
      when: ({ traits, transport }) =>
        transport.transaction !== undefined && traits.atomicBatch && traits.dedupe !== 'none',
      async keep({ queue, near, far, message, begin, subscribe, take, receive }) {
        const name = await queue()
        const user = await begin()
        const inside = await within(near, user.tx)
        const remember = (fingerprint: string) => ({
          remember: [{ kind: 'idempotency' as const, key: 'k', fingerprint, windowMs: 60_000 }],
        })
        const before = message(remember('a'))
        assert.deepEqual((await inside.send(name, [before])).map(codeOf), ['ok'])
        const batch = [message(), message(remember('b'))]
        const refused = await inside.send(name, batch, { atomic: true })
        assert.deepEqual(refused.map(codeOf), ['conflict', 'conflict'])
        const after = message()
        assert.deepEqual((await inside.send(name, [after])).map(codeOf), ['ok'])
        await user.commit()
        const subscription = await subscribe(far, name)
        const ids = (await take(subscription, 2)).map(({ envelope }) => envelope.id)
        assert.deepEqual(ids, [before.id, after.id])
        assert.deepEqual(await receive(subscription), [])
      },
    },
    {
      title: 'A transaction of another client or database is not recognised.',
      when: transactional,
      async keep({ near, harness }) {
        const strangers = [undefined, null, 1, 'tx', {}, () => {}]
        for (const foreign of [...strangers, ...(harness.foreignTransactions?.() ?? [])]) {
          assert.equal(await present(near.transaction)(foreign), undefined)
        }
      },
    },
  ],
}
