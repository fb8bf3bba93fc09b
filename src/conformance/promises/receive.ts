import assert from 'node:assert/strict'
import type { Delivery } from '../../model/delivery.ts'
import { acked, assertAllOk, idsOf } from '../acts.ts'
import type { Family } from '../promise.ts'

/** Far longer than a wake-up takes, far shorter than the waits below. */
const WAKE_WITHIN_MS = 5_000
const LONG_MS = 60_000
/** Longer than some sends take; times the levels, longer than all of them. */
const AGEING_MS = 3_000

export const receive: Family = {
  name: 'receive',
  promises: [
    {
      title: 'A waiting receive is woken by a message that another connection sends.',
      async keep({ queue, near, far, message, send, subscribe, settles, passes, never }) {
        const name = await queue()
        const subscription = await subscribe(far, name)
        const waiting = subscription.receive({ max: 10, waitMs: LONG_MS, signal: never })
        await passes(50)
        const sent = message()
        await send(near, name, sent)
        assert.deepEqual(idsOf(await settles('the wake-up', waiting, WAKE_WITHIN_MS)), [sent.id])
      },
    },
    {
      title: 'A receive on an empty queue answers empty once waitMs has passed.',
      async keep({ queue, near, subscribe, settles, never, now }) {
        const subscription = await subscribe(near, await queue())
        const startedAt = now()
        const waiting = subscription.receive({ max: 10, waitMs: 300, signal: never })
        assert.deepEqual(await settles('the empty answer', waiting), [])
        // A real timer may fire a millisecond early by the wall clock.
        assert.ok(now() - startedAt >= 298, `answered after ${now() - startedAt} ms`)
      },
    },
    {
      title: 'A receive with waitMs 0 asks once and does not wait.',
      async keep({ queue, near, subscribe, receive: ask }) {
        assert.deepEqual(await ask(await subscribe(near, await queue())), [])
      },
    },
    {
      title: 'An aborted receive answers empty, and the next message goes to somebody else.',
      async keep({ queue, near, far, message, send, subscribe, successor, settles, passes, one }) {
        const name = await queue()
        const abort = new AbortController()
        const subscription = await subscribe(near, name)
        const waiting = subscription.receive({ max: 10, waitMs: LONG_MS, signal: abort.signal })
        await passes(20)
        abort.abort()
        assert.deepEqual(await settles('the aborted receive', waiting, WAKE_WITHIN_MS), [])
        const sent = message()
        await send(near, name, sent)
        assert.equal((await one(await successor(far, name))).envelope.id, sent.id)
      },
    },
    {
      title: 'A receive whose signal has fired already takes nothing.',
      async keep({ queue, near, far, message, send, subscribe, successor, settles, one }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        const subscription = await subscribe(near, name)
        const asked = subscription.receive({ max: 1, waitMs: 100, signal: AbortSignal.abort() })
        assert.deepEqual(await settles('the aborted receive', asked), [])
        assert.equal((await one(await successor(far, name))).envelope.id, sent.id)
      },
    },
    {
      title: 'No receive answers more than max.',
      async keep({ queue, near, far, message, send, subscribe, until, receive: ask }) {
        const name = await queue()
        await send(near, name, ...Array.from({ length: 10 }, () => message()))
        const subscription = await subscribe(far, name)
        const sizes: number[] = []
        await until('all ten', async () => {
          sizes.push((await ask(subscription, 4)).length)
          return sizes.reduce((sum, size) => sum + size, 0) >= 10
        })
        assert.ok(
          sizes.every((size) => size <= 4),
          `sizes were ${sizes}`,
        )
      },
    },
    {
      title:
        'A subscription that is made smaller and larger again keeps what it has in hand, and hands out all that waits.',
      async keep({ queue, near, far, message, send, subscribe, take, one, settle }) {
        const name = await queue()
        const sent = Array.from({ length: 10 }, () => message())
        await send(near, name, ...sent)
        const subscription = await subscribe(far, name)
        const held = await take(subscription, 2)
        subscription.resize(1)
        assertAllOk(await settle(subscription, ...held.map(acked)))
        const handled = [...held]
        for (let times = 0; times < 3; times++) {
          const next = await one(subscription)
          handled.push(next)
          assertAllOk(await settle(subscription, acked(next)))
        }
        subscription.resize(1_000)
        const together = await take(subscription, 5)
        assertAllOk(await settle(subscription, ...together.map(acked)))
        const ids = sent.map(({ id }) => id)
        assert.deepEqual(idsOf([...handled, ...together]).toSorted(), ids.toSorted())
      },
    },
    {
      title: 'Higher priorities come first, and equal ones in the order of sending.',
      when: ({ traits }) => traits.priorities > 1,
      async keep({ queue, near, far, message, send, subscribe, take }) {
        const name = await queue()
        const sent = [0, 1, 0, 1, 0].map((priority) => message({ priority }))
        for (const each of sent) await send(near, name, each)
        const order = [1, 3, 0, 2, 4].map((at) => sent[at]?.id)
        // Not all in one receive: whoever takes the oldest two and sorts them has kept nothing.
        const subscription = await subscribe(far, name)
        const arrived = [...(await take(subscription, 2)), ...(await take(subscription, 3))]
        assert.deepEqual(idsOf(arrived), order)
      },
    },
    {
      title:
        'A level of priority is worth ageingMs of waiting: beyond it the older message goes first.',
      when: ({ traits }) => traits.priorities > 2,
      async keep({ queue, near, far, message, send, subscribe, take, passes, traits }) {
        const highest = traits.priorities - 1
        const name = await queue({ ageingMs: AGEING_MS })
        const sent = [0, 0, 1, highest, 1].map((priority) => message({ priority }))
        const [waiting, behind] = sent
        assert.ok(waiting && behind)
        await send(near, name, waiting)
        await send(near, name, behind)
        await passes(AGEING_MS + 200)
        for (const later of sent.slice(2)) await send(near, name, later)
        const order = [3, 0, 1, 2, 4].map((at) => sent[at]?.id)
        const subscription = await subscribe(far, name)
        const arrived = [...(await take(subscription, 2)), ...(await take(subscription, 3))]
        assert.deepEqual(idsOf(arrived), order)
      },
    },
    {
      title: 'A batch is received in the order of its items.',
      // What promises no order and stores a batch in parts may mix it.
      when: ({ traits }) => traits.order !== 'none' || traits.atomicBatch,
      async keep({ queue, near, far, message, send, subscribe, take, settle, traits }) {
        const name = await queue()
        const keyed = traits.order === 'perKey' ? { orderingKey: 'k' } : {}
        const sent = Array.from({ length: 20 }, () => message(keyed))
        await send(near, name, ...sent)
        const order = sent.map((each) => each.id)
        const subscription = await subscribe(far, name)
        // Where a key is in order, its next message may wait for the ack of the one before.
        const size = traits.order === 'perKey' ? 1 : 20
        const arrived: Delivery[] = []
        while (arrived.length < 20) {
          const some = await take(subscription, size)
          assertAllOk(await settle(subscription, ...some.map(acked)))
          arrived.push(...some)
        }
        assert.deepEqual(idsOf(arrived), order)
      },
    },
    {
      title: 'Two consumers at once never hold the same message.',
      async keep({ queue, near, far, message, send, subscribe, receive: ask, until }) {
        const name = await queue()
        await send(near, name, ...Array.from({ length: 60 }, () => message()))
        // A long lease: this is about claims, and a slow machine must not turn it into one about
        // leases.
        const leaseMs = 30_000
        const here = await subscribe(near, name, { leaseMs })
        const there = await subscribe(far, name, { leaseMs })
        const ids: string[] = []
        await until('all sixty', async () => {
          const batches = await Promise.all([ask(here, 7), ask(there, 7)])
          ids.push(...batches.flatMap(idsOf))
          return ids.length >= 60
        })
        assert.equal(new Set(ids).size, 60)
        assert.equal(ids.length, 60)
      },
    },
  ],
}
