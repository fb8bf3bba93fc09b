import assert from 'node:assert/strict'
import type { Envelope } from '../../model/envelope.ts'
import type { ErrorClass } from '../../model/history.ts'
import type { Shelf, ShelfListOptions } from '../../transport/transport.ts'
import { assertAllOk, assertGauge, died, failedAttempt, present, released } from '../acts.ts'
import type { Family, Subject } from '../promise.ts'
import type { Scope } from '../scope.ts'
import { kill } from './dead.ts'

const shelved = ({ transport }: Subject): boolean => transport.shelf !== undefined

async function walk(shelf: Shelf, queue: string, options: ShelfListOptions): Promise<string[][]> {
  const pages: string[][] = []
  let cursor: string | null | undefined
  while (cursor !== null && pages.length < 100) {
    const page = await shelf.list(queue, {
      ...options,
      ...(cursor === undefined ? {} : { cursor }),
    })
    pages.push(page.items.map((letter) => letter.envelope.id))
    cursor = page.cursor
  }
  return pages
}

async function someDead(
  scope: Scope,
  classes: readonly ErrorClass[],
): Promise<[string, Envelope[]]> {
  const name = await scope.queue()
  const sent = classes.map(() => scope.message())
  await scope.send(scope.near, name, ...sent)
  const subscription = await scope.subscribe(scope.near, name, { leaseMs: 60_000 })
  const deliveries = await scope.take(subscription, sent.length)
  const deaths = deliveries.map((delivery, at) =>
    died(delivery, { errorClass: classes[at] ?? 'permanent' }),
  )
  assertAllOk(await scope.settle(subscription, ...deaths))
  await subscription.close()
  return [name, sent]
}

export const deadLetter: Family = {
  name: 'dead letters',
  promises: [
    {
      title: 'A dead message explains itself: class, reason, attempts, owner, times, content.',
      when: shelved,
      async keep({ queue, near, far, message, send, subscribe, one, settle }) {
        const name = await queue({ owner: 'team-payments' })
        const sent = message({ headers: { a: 'b' }, idempotencyKey: 'order-1', priority: 0 })
        await send(near, name, sent)
        const subscription = await subscribe(near, name)
        const [first, last] = [failedAttempt(), failedAttempt({ code: 'HTTP_410' })]
        await settle(
          subscription,
          released(await one(subscription), { counted: true, attempt: first }),
        )
        const act = { reason: 'HTTP 410', errorClass: 'permanent', attempt: last } as const
        const delivery = await one(subscription)
        assertAllOk(await settle(subscription, died(delivery, act)))
        const letter = present(await present(far.shelf).get(name, sent.id))
        assert.equal(letter.queue, name)
        assert.equal(letter.owner, 'team-payments')
        assert.equal(letter.errorClass, 'permanent')
        assert.equal(letter.reason, 'HTTP 410')
        assert.deepEqual(letter.history.records, [first, last])
        assert.equal(letter.envelope.id, sent.id)
        assert.equal(letter.envelope.idempotencyKey, 'order-1')
        assert.deepEqual({ ...letter.envelope.headers }, { a: 'b' })
        assert.deepEqual([...letter.envelope.body], [...sent.body])
        assert.equal(letter.sentAt, delivery.sentAt)
        assert.ok(letter.deadAt >= letter.sentAt)
      },
    },
    {
      title: 'A death without an attempt of its own adds no record.',
      when: shelved,
      async keep({ queue, near, far, message, send, subscribe, one, settle }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        const subscription = await subscribe(near, name)
        const delivery = await one(subscription)
        const reason = 'three workers died'
        assertAllOk(
          await settle(subscription, { as: 'dead', delivery, reason, errorClass: 'crashed' }),
        )
        const letter = present(await present(far.shelf).get(name, sent.id))
        assert.equal(letter.errorClass, 'crashed')
        assert.deepEqual(letter.history.records, [])
      },
    },
    {
      title: 'A dead message is never received, and no longer counts as waiting.',
      when: shelved,
      async keep(scope) {
        const [name] = await someDead(scope, ['permanent'])
        await scope.leaseRunsOut()
        assert.deepEqual(await scope.receive(await scope.subscribe(scope.far, name)), [])
        const gauge = await present(scope.far.browse).gauge(name)
        assertGauge(gauge, { depth: 0, inFlight: 0, dead: 1 })
      },
    },
    {
      title: 'The shelf lists the newest first.',
      when: shelved,
      async keep(scope) {
        const { queue, near, far, message, send, subscribe, one, settle, passes } = scope
        const name = await queue()
        const subscription = await subscribe(near, name)
        const ids: string[] = []
        for (let round = 0; round < 3; round++) {
          const sent = message()
          await send(near, name, sent)
          await settle(subscription, died(await one(subscription)))
          ids.unshift(sent.id)
          await passes(5)
        }
        const { items, cursor } = await present(far.shelf).list(name, { limit: 10 })
        assert.deepEqual(
          items.map((letter) => letter.envelope.id),
          ids,
        )
        assert.equal(cursor, null)
      },
    },
    {
      title:
        'A cursor walks over all dead letters without gap or double, also when they died at once.',
      when: shelved,
      async keep(scope) {
        const [name, sent] = await someDead(
          scope,
          Array.from({ length: 23 }, () => 'permanent'),
        )
        const pages = await walk(present(scope.far.shelf), name, { limit: 5 })
        assert.ok(pages.every((page) => page.length <= 5))
        assert.deepEqual(pages.flat().sort(), sent.map(({ id }) => id).sort())
      },
    },
    {
      title: 'A walk with a cursor survives redrives and new deaths between its pages.',
      when: shelved,
      async keep(scope) {
        const [name, sent] = await someDead(
          scope,
          Array.from({ length: 9 }, () => 'permanent'),
        )
        const shelf = present(scope.far.shelf)
        const first = await shelf.list(name, { limit: 3 })
        const seen = first.items.map((letter) => letter.envelope.id)
        await shelf.redrive(name, seen, { actor: 'kit', reason: 'between two pages' })
        await scope.passes(5)
        await kill(scope, name, scope.message())
        const rest = await walk(shelf, name, {
          limit: 4,
          cursor: present(first.cursor ?? undefined),
        })
        const all = new Set([...seen, ...rest.flat()])
        assert.ok(sent.every(({ id }) => all.has(id)))
      },
    },
    {
      title: 'The shelf is filtered and counted by class.',
      when: shelved,
      async keep(scope) {
        const [name] = await someDead(scope, ['permanent', 'crashed', 'permanent', 'throttled'])
        const shelf = present(scope.far.shelf)
        const only = await shelf.list(name, { limit: 10, errorClass: 'permanent' })
        assert.deepEqual(
          only.items.map((letter) => letter.errorClass),
          ['permanent', 'permanent'],
        )
        assert.equal(await shelf.count(name, {}), 4)
        assert.equal(await shelf.count(name, { errorClass: 'crashed' }), 1)
        assert.equal(await shelf.count(name, { errorClass: 'transient' }), 0)
        assert.deepEqual(
          await walk(shelf, name, { limit: 1, errorClass: 'throttled' }).then(count),
          1,
        )
      },
    },
    {
      title: 'The shelf is filtered by the time of death.',
      when: shelved,
      async keep(scope) {
        const [name, [old]] = await someDead(scope, ['permanent'])
        const shelf = present(scope.far.shelf)
        const { deadAt } = present(await shelf.get(name, present(old).id))
        await scope.passes(20)
        await kill(scope, name, scope.message())
        assert.equal(await shelf.count(name, { deadBefore: deadAt }), 1)
        const { items } = await shelf.list(name, { limit: 10, deadBefore: deadAt })
        assert.deepEqual(
          items.map((letter) => letter.envelope.id),
          [old?.id],
        )
        assert.equal(await shelf.count(name, { deadBefore: deadAt - 1 }), 0)
      },
    },
    {
      title: 'A dead letter of one queue is not seen by another.',
      when: shelved,
      async keep(scope) {
        const [, [letter]] = await someDead(scope, ['permanent'])
        const other = await scope.queue()
        const shelf = present(scope.far.shelf)
        assert.equal(await shelf.get(other, present(letter).id), undefined)
        assert.deepEqual((await shelf.list(other, { limit: 10 })).items, [])
        const note = { actor: 'kit', reason: 'wrong queue' }
        assert.deepEqual(await shelf.redrive(other, [present(letter).id], note), [])
      },
    },
    {
      title: 'A message that is not dead is not on the shelf.',
      when: shelved,
      async keep({ queue, near, far, message, send }) {
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        assert.equal(await present(far.shelf).get(name, sent.id), undefined)
        assert.equal(await present(far.shelf).get(name, 'no-such-id'), undefined)
      },
    },
  ],
}

function count(pages: readonly (readonly string[])[]): number {
  return pages.flat().length
}
