import assert from 'node:assert/strict'
import type { Delivery } from '../../model/delivery.ts'
import { CRASH_CODE } from '../../model/history.ts'
import type { Subscription } from '../../transport/transport.ts'
import { acked, assertAllOk, idsOf, released } from '../acts.ts'
import type { Family, Subject } from '../promise.ts'
import type { Scope } from '../scope.ts'
import { alone, crashWith } from './crash-acts.ts'
import { repeatedCrashes } from './crash-repeated.ts'

const counted = ({ traits }: Subject): boolean => traits.countsCrashes === true

async function oneSuspect(scope: Scope): Promise<[Subscription, Delivery]> {
  const name = await scope.queue()
  await scope.send(scope.near, name, scope.message())
  await crashWith(scope, name, 1)
  const subscription = await scope.subscribe(scope.far, name, { leaseMs: 60_000 })
  return [subscription, await scope.one(subscription)]
}

export const crash: Family = {
  name: 'crash',
  promises: [
    {
      title:
        'A message whose holder vanished comes back with one counted attempt of class crashed.',
      when: counted,
      async keep(scope) {
        const [, { history, alone }] = await oneSuspect(scope)
        assert.equal(history.counted, 1)
        assert.equal(history.crashes, 1)
        assert.deepEqual(
          history.records.map(({ errorClass, code }) => [errorClass, code]),
          [['crashed', CRASH_CODE]],
        )
        assert.equal(alone, true)
      },
    },
    {
      title: 'What vanished holders had in hand comes one to a batch and before all others.',
      when: counted,
      async keep(scope) {
        const { queue, near, far, message, send, subscribe, receive, settle } = scope
        const name = await queue()
        const suspects = [message(), message(), message()]
        const others = [message(), message()]
        await send(near, name, ...suspects)
        await crashWith(scope, name, 3)
        await send(near, name, ...others)
        const subscription = await subscribe(far, name, { leaseMs: 60_000 })
        const back: string[] = []
        for (const _ of suspects) {
          const batch = await receive(subscription)
          assert.equal(batch.length, 1)
          assert.equal(batch[0]?.alone, true)
          back.push(...idsOf(batch))
          assertAllOk(await settle(subscription, ...batch.map(acked)))
        }
        assert.deepEqual(back.sort(), suspects.map(({ id }) => id).sort())
        assert.deepEqual(
          idsOf(await receive(subscription)),
          others.map(({ id }) => id),
        )
      },
    },
    {
      title: 'A message that only waited is not blamed for the crash of another.',
      when: counted,
      async keep(scope) {
        const { queue, near, far, message, send, subscribe, take } = scope
        const name = await queue()
        const [taken, waiting] = [message(), message()]
        await send(near, name, taken, waiting)
        await crashWith(scope, name, 1)
        const back = await take(await subscribe(far, name, { leaseMs: 60_000 }), 2)
        const innocent = back.find(({ envelope }) => envelope.id === waiting.id)
        assert.equal(innocent?.alone, false)
        assert.equal(innocent?.history.counted, 0)
        assert.deepEqual(innocent?.history.records, [])
      },
    },
    {
      title: 'A suspect that is alone and dies again is blamed alone.',
      when: counted,
      async keep(scope) {
        const { queue, near, far, message, send, connect, subscribeShortly, one } = scope
        const name = await queue()
        await send(near, name, message(), message(), message())
        await crashWith(scope, name, 3)
        const doomed = await connect()
        const deadly = await alone(scope, await subscribeShortly(doomed, name))
        await scope.vanish(doomed)
        await scope.leaseRunsOut()
        const subscription = await scope.subscribe(far, name, { leaseMs: 60_000 })
        for (let seen = 0; seen < 3; seen++) {
          const back = await one(subscription)
          const deaths = back.envelope.id === deadly.envelope.id ? 2 : 1
          assert.equal(back.history.crashes, deaths, 'a neighbour was blamed')
          assertAllOk(await scope.settle(subscription, acked(back)))
        }
      },
    },
    {
      title: 'An uncounted release keeps a suspect alone.',
      when: (subject) => counted(subject) && subject.traits.uncountedRelease,
      async keep(scope) {
        const [subscription, suspect] = await oneSuspect(scope)
        assertAllOk(await scope.settle(subscription, released(suspect, { counted: false })))
        const again = await scope.one(subscription)
        assert.equal(again.alone, true)
        assert.equal(again.history.counted, 1)
      },
    },
    {
      title: 'A suspect that was released with a delay is alone when it comes back.',
      when: (subject) => counted(subject) && subject.traits.uncountedRelease,
      async keep(scope) {
        const [subscription, suspect] = await oneSuspect(scope)
        await scope.settle(subscription, released(suspect, { counted: false, delayMs: 200 }))
        assert.equal((await scope.one(subscription)).alone, true)
      },
    },
    {
      title: 'A counted release ends the suspicion.',
      when: counted,
      async keep(scope) {
        const [subscription, suspect] = await oneSuspect(scope)
        assertAllOk(await scope.settle(subscription, released(suspect, { counted: true })))
        const again = await scope.one(subscription)
        assert.equal(again.alone, false)
        assert.equal(again.history.counted, 2)
        assert.equal(again.history.crashes, 1)
      },
    },
    {
      title: 'Each crash counts: a second one is remembered beside the first.',
      when: counted,
      async keep(scope) {
        const { queue, near, far, message, send, subscribe, one } = scope
        const name = await queue()
        await send(near, name, message())
        await crashWith(scope, name, 1)
        await crashWith(scope, name, 1)
        const { history, alone } = await one(await subscribe(far, name))
        assert.equal(history.crashes, 2)
        assert.equal(history.counted, 2)
        assert.equal(history.records.length, 2)
        assert.equal(alone, true)
      },
    },
    ...repeatedCrashes,
  ],
}
