import assert from 'node:assert/strict'
import type { Envelope } from '../../model/envelope.ts'
import type { Subscription } from '../../transport/transport.ts'
import { acked, assertAllOk, failedAttempt, idsOf, present, released } from '../acts.ts'
import type { Family, Subject } from '../promise.ts'
import type { Scope } from '../scope.ts'
import { kill } from './dead.ts'

const shares = ({ traits }: Subject): boolean => traits.fairness === true

/** A tenant with so many waiting that no other would be seen behind them. */
const CROWD = 300

function crowd({ message }: Scope, fields: Partial<Envelope> = {}): readonly Envelope[] {
  return Array.from({ length: CROWD }, () => message({ fairKey: 'crowd', ...fields }))
}

/** The next ones, a few at a time, so that they are handed out one after another. */
async function next(
  { take }: Scope,
  subscription: Subscription,
  count: number,
): Promise<readonly Envelope[]> {
  const arrived: Envelope[] = []
  while (arrived.length < count) {
    const some = await take(subscription, Math.min(2, count - arrived.length))
    arrived.push(...some.map(({ envelope }) => envelope))
  }
  return arrived
}

function countOf(all: readonly Envelope[], fairKey: string): number {
  return all.filter((one) => one.fairKey === fairKey).length
}

export const fairness: Family = {
  name: 'fairness',
  promises: [
    {
      title:
        'A message of a fair key that has none waiting comes after at most two of each other key, however many wait.',
      when: shares,
      async keep(scope) {
        const { queue, near, far, message, send, subscribe } = scope
        const name = await queue()
        await send(near, name, ...crowd(scope))
        await send(far, name, ...crowd(scope, { fairKey: 'mob' }))
        const subscription = await subscribe(far, name)
        await next(scope, subscription, 7)
        const single = message({ fairKey: 'single' })
        await send(near, name, single)
        const place = (await next(scope, subscription, 5)).findIndex(({ id }) => id === single.id)
        assert.ok(place >= 0, 'among the first five: two of each other key may go before it')
      },
    },
    {
      title: 'Fair keys that wait take turns by their weights, each in the order of its sends.',
      when: shares,
      async keep(scope) {
        const { queue, near, far, send, subscribe } = scope
        const name = await queue()
        const light = crowd(scope)
        const heavy = crowd(scope, { fairKey: 'heavy', fairWeight: 3 })
        await send(near, name, ...light)
        await send(near, name, ...heavy)
        const arrived = await next(scope, await subscribe(far, name), 40)
        const heavies = countOf(arrived, 'heavy')
        assert.ok(heavies >= 28 && heavies <= 32, `${heavies} of 40, of three in four`)
        for (const sent of [light, heavy]) {
          const own = arrived.filter(({ fairKey }) => fairKey === sent[0]?.fairKey)
          assert.deepEqual(
            own.map(({ id }) => id),
            sent.slice(0, own.length).map(({ id }) => id),
          )
        }
      },
    },
    {
      title: 'Priority goes before fairness, and each priority is shared out by itself.',
      when: (subject) => shares(subject) && subject.traits.priorities > 1,
      async keep(scope) {
        const { queue, near, far, message, send, subscribe } = scope
        const name = await queue()
        await send(near, name, ...crowd(scope))
        await send(near, name, message({ fairKey: 'single' }))
        const urgent = [1, 2, 3].map(() => message({ fairKey: 'crowd', priority: 1 }))
        await send(near, name, ...urgent)
        const other = message({ fairKey: 'single', priority: 1 })
        await send(near, name, other)
        const arrived = await next(scope, await subscribe(far, name), 7)
        const first = arrived.slice(0, 4)
        assert.ok(first.every(({ priority }) => priority === 1))
        assert.ok(first.slice(0, 3).some(({ id }) => id === other.id))
        assert.equal(countOf(arrived.slice(4), 'single'), 1)
      },
    },
    {
      title:
        'A message whose delay or retry is over, or that was redriven, takes its turn by its fair key.',
      when: (subject) => shares(subject) && subject.transport.shelf !== undefined,
      async keep(scope) {
        const { queue, near, far, message, send, subscribe, passes, one, settle } = scope
        const name = await queue()
        const failed = message({ fairKey: 'single' })
        const buried = message({ fairKey: 'single' })
        const subscription = await subscribe(far, name)
        await send(near, name, failed)
        const act = { counted: true, delayMs: 300, attempt: failedAttempt() }
        assertAllOk(await settle(subscription, released(await one(subscription), act)))
        await kill(scope, name, buried)
        await send(near, name, ...crowd(scope))
        const delayed = message({ fairKey: 'single', delayMs: 300 })
        await send(near, name, delayed)
        await passes(600)
        const note = { actor: 'on-call', reason: 'again' }
        assert.deepEqual(await present(near.shelf).redrive(name, [buried.id], note), [buried.id])
        // A backend may look for what fell due now and then only, so it has a moment between two receives.
        const arrived: Envelope[] = []
        while (countOf(arrived, 'single') < 3 && arrived.length < CROWD / 2) {
          arrived.push(...(await next(scope, subscription, 2)))
          await passes(30)
        }
        for (const { id } of [failed, delayed, buried]) {
          assert.ok(
            arrived.some((one) => one.id === id),
            `${id} came before the crowd had ended`,
          )
        }
      },
    },
    {
      title: 'What is given back takes its turn by its fair key, not that of its whole crowd.',
      when: shares,
      async keep(scope) {
        const { queue, near, far, message, send, subscribe, take, settle } = scope
        const name = await queue()
        await send(near, name, ...crowd(scope))
        const subscription = await subscribe(far, name)
        const held = await take(subscription, 100)
        await send(near, name, message({ fairKey: 'single' }))
        assertAllOk(
          await settle(subscription, ...held.map((one) => released(one, { counted: false }))),
        )
        assert.equal(countOf(await next(scope, subscription, 3), 'single'), 1)
      },
    },
    {
      title: 'Messages of one ordering key stay in order beside fairness.',
      when: (subject) => shares(subject) && subject.traits.order === 'perKey',
      async keep(scope) {
        const { queue, near, far, message, send, subscribe, take, settle } = scope
        const name = await queue()
        await send(near, name, ...crowd(scope))
        const ordered = [1, 2, 3].map(() => message({ fairKey: 'single', orderingKey: 'k' }))
        await send(near, name, ...ordered)
        const subscription = await subscribe(far, name)
        const arrived: string[] = []
        for (let turn = 0; turn < 12; turn += 1) {
          const some = await take(subscription, 1)
          arrived.push(...idsOf(some.filter(({ envelope }) => envelope.orderingKey === 'k')))
          assertAllOk(await settle(subscription, ...some.map(acked)))
        }
        assert.deepEqual(
          arrived,
          ordered.map(({ id }) => id),
        )
      },
    },
    {
      title:
        'A fair key and its weight arrive with their message, and are kept with its dead letter.',
      when: (subject) => shares(subject) && subject.transport.shelf !== undefined,
      async keep(scope) {
        const { queue, near, far, message, send, subscribe, one } = scope
        const name = await queue()
        const share = { fairKey: 'tenant "ä"', fairWeight: 0.5 }
        const dead = message(share)
        await kill(scope, name, dead)
        const letter = await present(far.shelf).get(name, dead.id)
        const alive = message(share)
        await send(near, name, alive)
        const { envelope } = await one(await subscribe(far, name))
        for (const kept of [letter?.envelope, envelope]) {
          assert.deepEqual({ fairKey: kept?.fairKey, fairWeight: kept?.fairWeight }, share)
        }
      },
    },
  ],
}
