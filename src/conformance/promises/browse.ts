import assert from 'node:assert/strict'
import type { Transport } from '../../transport/transport.ts'
import {
  acked,
  assertAllOk,
  assertGauge,
  assertLost,
  canBrowse,
  idsOf,
  longDelayMs,
  present,
} from '../acts.ts'
import type { Family } from '../promise.ts'
import { kill } from './dead.ts'

const gauged = canBrowse('gauge')
const found = canBrowse('get')
const cancels = canBrowse('cancel', 'get')
const pauses = canBrowse('setPaused')
const HOUR_MS = 3_600_000

async function ageOf(transport: Transport, queue: string): Promise<number | undefined> {
  return (await present(transport.browse).gauge(queue)).ageMs
}

export const browse: Family = {
  name: 'browse',
  promises: [
    {
      title: 'The gauge counts each state by itself.',
      when: gauged,
      async keep(scope) {
        const { queue, near, far, message, send, subscribe, take, traits } = scope
        const name = await queue()
        if (near.shelf) await kill(scope, name, message())
        await send(near, name, message(), message())
        // No more than these two: a backend that pushes would take the others out of the queue.
        const isAssigned = traits.claim.kind === 'assignment'
        const maxInFlight = isAssigned ? 100 : 2
        await take(await subscribe(near, name, { leaseMs: 60_000, maxInFlight }), 2)
        await send(near, name, message(), message(), message())
        const scheduled = traits.delay === 'none' ? 0 : 1
        if (scheduled > 0) await send(near, name, message({ delayMs: longDelayMs(traits) }))
        const gauge = await present(far.browse).gauge(name)
        const dead = near.shelf ? 1 : 0
        // One that cannot tell what is in flight may count it as waiting (a log), or not at all.
        const isCounted = gauge.inFlight === undefined && gauge.depth === 5
        // Whose lane is assigned may have all of it in hand: each lane needs room of its own there.
        const isPushed = isAssigned && (gauge.depth ?? 0) < 5
        const depth = isPushed ? gauge.depth : isCounted ? 5 : 3
        assertGauge(gauge, { depth, scheduled, inFlight: 2, dead, paused: false })
      },
    },
    {
      title: 'The age is that of the oldest ready message, and 0 when there is none.',
      when: gauged,
      async keep({ queue, near, far, message, send, passes, traits }) {
        const name = await queue()
        const gauge = async (): Promise<number> => (await ageOf(far, name)) ?? 0
        // A backend that cannot say is not asked.
        if ((await ageOf(far, name)) === undefined) return
        assert.equal(await gauge(), 0)
        if (traits.delay !== 'none')
          await send(near, name, message({ delayMs: longDelayMs(traits) }))
        assert.equal(await gauge(), 0)
        await send(near, name, message())
        await passes(300)
        await send(near, name, message())
        const ageMs = await gauge()
        assert.ok(ageMs >= 290 && ageMs < 60_000, `the age was ${ageMs} ms`)
      },
    },
    {
      title: 'A message is found by its id in every state.',
      when: found,
      async keep({ queue, near, far, message, send, subscribe, one }) {
        const name = await queue()
        const [held, ready, scheduled] = [message(), message(), message({ delayMs: HOUR_MS })]
        await send(near, name, held)
        await one(await subscribe(near, name, { leaseMs: 60_000 }))
        await send(near, name, ready, scheduled)
        const states = new Map([
          [held.id, 'in flight'],
          [ready.id, 'ready'],
          [scheduled.id, 'scheduled'],
        ])
        for (const [id, state] of states) {
          const stored = await present(far.browse?.get)(name, id)
          assert.equal(stored?.envelope.id, id)
          assert.equal(stored?.state, state)
          assert.equal(stored?.history.counted, 0)
        }
        assert.equal(await present(far.browse?.get)(name, 'no-such-id'), undefined)
      },
    },
    {
      title: 'A cancelled message is gone, whether it was ready or scheduled.',
      when: cancels,
      async keep({ queue, near, far, message, send, subscribe, receive }) {
        const name = await queue()
        const sent = [message(), message({ delayMs: HOUR_MS })]
        await send(near, name, ...sent)
        for (const { id } of sent) {
          assert.equal(await present(near.browse?.cancel)(name, id), true)
          assert.equal(await present(far.browse?.get)(name, id), undefined)
          assert.equal(await present(far.browse?.cancel)(name, id), false)
        }
        assert.deepEqual(await receive(await subscribe(far, name)), [])
      },
    },
    {
      title:
        'Cancelling a message in flight takes it from its holder: renewal and ack answer lost.',
      when: (subject) => cancels(subject) && subject.traits.claim.kind === 'lease',
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
        receive,
        leaseRunsOut,
      }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        const subscription = await subscribeShortly(near, name)
        const delivery = await one(subscription)
        assert.equal(await present(far.browse?.cancel)(name, sent.id), true)
        const [renewed] = await present(subscription.renew)([delivery], 60_000)
        assertLost(renewed)
        assert.equal(delivery.claim.lost.aborted, true)
        const [late] = await settle(subscription, acked(delivery))
        assertLost(late)
        await leaseRunsOut()
        assert.deepEqual(await receive(await subscribe(far, name)), [])
      },
    },
    {
      title: 'A paused queue hands out nothing to anybody, and keeps what is sent.',
      when: pauses,
      async keep({ queue, near, far, message, send, subscribe, successor, receive, take, until }) {
        const name = await queue()
        const here = await subscribe(near, name)
        const there = await subscribe(far, name)
        await present(near.browse?.setPaused)(name, true)
        await until('the pause', async () => (await present(far.browse).gauge(name)).paused)
        const sent = message()
        await send(near, name, sent)
        assert.deepEqual(await receive(here), [])
        assert.deepEqual(await receive(there), [])
        await present(far.browse?.setPaused)(name, false)
        assert.deepEqual(idsOf(await take(await successor(far, name), 1)), [sent.id])
      },
    },
    {
      title: 'A pause is remembered by connections that are made later, and by a repeated ensure.',
      when: pauses,
      async keep({ queue, near, message, send, connect, subscribe, receive, never }) {
        const name = await queue()
        await present(near.browse?.setPaused)(name, true)
        await send(near, name, message())
        const later = await connect()
        await later.topology.ensure([{ name, owner: 'team-late', maxDepth: undefined }], never)
        assert.equal((await present(later.browse).gauge(name)).paused, true)
        assert.deepEqual(await receive(await subscribe(later, name)), [])
      },
    },
    {
      title: 'What is in flight when its queue is paused can still be settled.',
      when: pauses,
      async keep({ queue, near, far, message, send, subscribe, one, settle }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name)
        const delivery = await one(subscription)
        await present(far.browse?.setPaused)(name, true)
        assertAllOk(await settle(subscription, acked(delivery)))
      },
    },
    {
      title: 'A receive that waits on a paused queue goes on when it is resumed.',
      when: pauses,
      async keep({ queue, near, far, message, send, subscribe, settles, passes, never }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        await present(far.browse?.setPaused)(name, true)
        const subscription = await subscribe(near, name)
        const receiveOptions = { max: 1, waitMs: 30_000, signal: never }
        const waiting = subscription.receive(receiveOptions)
        await passes(50)
        await present(far.browse?.setPaused)(name, false)
        const woken = await settles('the resumed receive', waiting, 35_000)
        const got = woken.length > 0 ? woken : await subscription.receive(receiveOptions)
        assert.deepEqual(idsOf(got), [sent.id])
      },
    },
    {
      title: 'A purge removes what waits, says how much, and leaves what is in flight.',
      when: canBrowse('purge'),
      async keep({ queue, near, far, message, send, subscribe, one, settle, receive }) {
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name, { leaseMs: 60_000 })
        const delivery = await one(subscription)
        await send(near, name, message(), message(), message({ delayMs: HOUR_MS }))
        assert.equal(await present(far.browse?.purge)(name), 3)
        assert.equal(await present(far.browse?.purge)(name), 0)
        assert.deepEqual(await receive(await subscribe(far, name)), [])
        assertAllOk(await settle(subscription, acked(delivery)))
      },
    },
    {
      title: 'A queue does not see the messages of another.',
      when: canBrowse('get', 'cancel', 'purge'),
      async keep({ queue, near, far, message, send }) {
        const [red, blue] = [await queue(), await queue()]
        const sent = message()
        await send(near, red, sent)
        assert.equal((await present(far.browse).gauge(blue)).depth, 0)
        assert.equal(await present(far.browse?.get)(blue, sent.id), undefined)
        assert.equal(await present(far.browse?.cancel)(blue, sent.id), false)
        assert.equal(await present(far.browse?.purge)(blue), 0)
        assert.equal((await present(far.browse).gauge(red)).depth, 1)
      },
    },
  ],
}
