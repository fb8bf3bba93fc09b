import assert from 'node:assert/strict'
import type { ShedOptions } from '../../transport/transport.ts'
import { codeOf, present } from '../acts.ts'
import type { Family, Subject } from '../promise.ts'
import type { Scope } from '../scope.ts'

const sheds = ({ transport }: Subject): boolean => transport.shed !== undefined

/** Makes room on one connection. */
function shed(
  { near, never }: Scope,
  name: string,
  options: Partial<ShedOptions> = {},
): Promise<number> {
  const asked = { max: 1, upTo: 0, signal: never, ...options }
  return present(near.shed)(name, asked)
}

export const shedding: Family = {
  name: 'shedding',
  promises: [
    {
      title: 'Of what is ready the oldest goes, and no more than was asked for.',
      when: sheds,
      async keep(scope) {
        const { queue, near, far, message, send } = scope
        const name = await queue()
        const sent = [message(), message(), message(), message()]
        for (const one of sent) await send(near, name, one)
        assert.equal(await shed(scope, name, { max: 2 }), 2)
        const left = await Promise.all(
          sent.map(({ id }) => present(present(far.browse).get)(name, id)),
        )
        assert.deepEqual(
          left.map((found) => found !== undefined),
          [false, false, true, true],
        )
      },
    },
    {
      title: 'The lowest priority goes first, and nothing of a higher one than was asked for.',
      when: (subject) => sheds(subject) && subject.traits.priorities > 1,
      async keep(scope) {
        const { queue, near, far, message, send } = scope
        const name = await queue()
        const sent = [5, 1, 0, 3, 0].map((priority) => message({ priority }))
        for (const one of sent) await send(near, name, one)
        assert.equal(await shed(scope, name, { max: 10, upTo: 3 }), 4)
        assert.equal((await present(far.browse).gauge(name)).depth, 1)
        const more = [2, 0, 1].map((priority) => message({ priority }))
        for (const one of more) await send(near, name, one)
        assert.equal(await shed(scope, name, { max: 2, upTo: 9 }), 2)
        assert.notEqual(await present(present(far.browse).get)(name, more[0]?.id ?? ''), undefined)
      },
    },
    {
      title: 'What is scheduled goes when nothing ready may, and what is due last goes first.',
      when: sheds,
      async keep(scope) {
        const { queue, near, far, message, send } = scope
        const name = await queue()
        const later = [1, 3, 2].map((hours) => message({ delayMs: hours * 3_600_000 }))
        await send(near, name, ...later, message())
        assert.equal(await shed(scope, name, { max: 2 }), 2)
        const gauge = await present(far.browse).gauge(name)
        assert.deepEqual([gauge.depth, gauge.scheduled], [0, 2])
        assert.equal(await present(present(far.browse).get)(name, later[1]?.id ?? ''), undefined)
      },
    },
    {
      title: 'What is in flight stays, and its ack counts.',
      when: sheds,
      async keep(scope) {
        const { queue, near, far, message, send, subscribe, one, settle } = scope
        const name = await queue()
        await send(near, name, message())
        const subscription = await subscribe(near, name, { leaseMs: 60_000 })
        const delivery = await one(subscription)
        assert.equal(await shed(scope, name, { max: 10 }), 0)
        const [settled] = await settle(subscription, { as: 'acked', delivery })
        assert.ok(settled?.ok)
        assert.equal((await present(far.browse).gauge(name)).depth, 0)
      },
    },
    {
      title: 'What has an ordering key stays: a key must have no gap that nobody chose.',
      when: (subject) => sheds(subject) && subject.traits.order === 'perKey',
      async keep(scope) {
        const { queue, near, far, message, send } = scope
        const name = await queue()
        await send(near, name, message({ orderingKey: 'k' }), message({ orderingKey: 'k' }))
        assert.equal(await shed(scope, name, { max: 10 }), 0)
        assert.equal((await present(far.browse).gauge(name)).depth, 2)
      },
    },
    {
      title: 'With a reason it becomes a dead letter, which can be redriven.',
      when: (subject) => sheds(subject) && subject.transport.shelf !== undefined,
      async keep(scope) {
        const { queue, near, far, message, send, subscribe, one } = scope
        const name = await queue()
        const ready = message({ headers: { shop: 'north' } })
        await send(near, name, ready, message({ delayMs: 3_600_000 }))
        assert.equal(await shed(scope, name, { max: 2, reason: 'no room' }), 2)
        assert.equal((await present(far.browse).gauge(name)).dead, 2)
        const letter = await present(far.shelf).get(name, ready.id)
        assert.deepEqual(
          [letter?.errorClass, letter?.reason, letter?.envelope.headers.shop],
          ['permanent', 'no room', 'north'],
        )
        assert.deepEqual([...(letter?.envelope.body ?? [])], [...ready.body])
        assert.equal(letter?.history.counted, 0)
        const note = { actor: 'kit', reason: 'there is room' }
        await present(near.shelf).redrive(name, [ready.id], note)
        const again = await one(await subscribe(far, name))
        assert.equal(again.envelope.id, ready.id)
      },
    },
    {
      title: 'Without a reason it is gone, and its id may be sent again.',
      when: sheds,
      async keep(scope) {
        const { queue, near, far, message, send, never } = scope
        const name = await queue()
        const sent = message()
        await send(near, name, sent)
        assert.equal(await shed(scope, name), 1)
        assert.equal((await present(far.browse).gauge(name)).dead, 0)
        const [again] = await far.send(name, [sent], { signal: never })
        assert.equal(again && codeOf(again), 'ok')
      },
    },
    {
      title: 'It makes room in a full queue, and two at once remove no message twice.',
      when: (subject) => sheds(subject) && subject.traits.capacity === 'exact',
      async keep(scope) {
        const { queue, near, far, message, send, never, settles } = scope
        const name = await queue({ maxDepth: 10 })
        await send(near, name, ...Array.from({ length: 10 }, () => message()))
        const asked = { max: 3, upTo: 0, signal: never }
        const both = [present(near.shed)(name, asked), present(far.shed)(name, asked)]
        const removed = (await settles('two sheds', Promise.all(both))).reduce((a, b) => a + b, 0)
        assert.ok(removed >= 3 && removed <= 6, `${removed} went`)
        assert.equal((await present(far.browse).gauge(name)).depth, 10 - removed)
        const more = Array.from({ length: removed + 1 }, () => message())
        const sent = await near.send(name, more, { signal: never })
        assert.deepEqual(sent.map(codeOf), [...more.slice(1).map(() => 'ok'), 'full'])
      },
    },
  ],
}
