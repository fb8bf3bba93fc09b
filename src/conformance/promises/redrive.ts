import assert from 'node:assert/strict'
import { acked, assertAllOk, failedAttempt, present } from '../acts.ts'
import type { Family, Subject } from '../promise.ts'
import { kill } from './dead.ts'

const shelved = ({ transport }: Subject): boolean => transport.shelf !== undefined
const note = { actor: 'on-call', reason: 'the receiver is back' }

export const redrive: Family = {
  name: 'redrive',
  promises: [
    {
      title: 'A redriven message is ready at once with its id, keys, headers, priority and body.',
      when: shelved,
      async keep(scope) {
        const { queue, far, message, subscribe, one } = scope
        const name = await queue()
        const priority = scope.traits.priorities > 5 ? 5 : 0
        const sent = message({ headers: { a: 'b' }, idempotencyKey: 'order-1', priority })
        await kill(scope, name, sent)
        const shelf = present(far.shelf)
        assert.deepEqual(await shelf.redrive(name, [sent.id], note), [sent.id])
        const { envelope } = await one(await subscribe(far, name))
        assert.equal(envelope.id, sent.id)
        assert.equal(envelope.idempotencyKey, 'order-1')
        assert.equal(envelope.priority, priority)
        assert.deepEqual({ ...envelope.headers }, { a: 'b' })
        assert.deepEqual([...envelope.body], [...sent.body])
      },
    },
    {
      title: 'A redriven message starts at attempt 1 and remembers the attempts before.',
      when: (subject) => shelved(subject) && subject.traits.keepsHistory,
      async keep(scope) {
        const { queue, near, message, subscribe, one } = scope
        const name = await queue()
        const sent = message()
        const attempt = failedAttempt({ errorClass: 'throttled' })
        await kill(scope, name, sent, { errorClass: 'throttled', attempt })
        await present(near.shelf).redrive(name, [sent.id], note)
        const { history, alone } = await one(await subscribe(scope.far, name))
        assert.deepEqual(
          { ...history, records: [...history.records] },
          { counted: 0, crashes: 0, throttledSince: undefined, records: [attempt], redrives: 1 },
        )
        assert.equal(alone, false)
      },
    },
    {
      title: 'What was redriven has left the shelf, and a second redrive moves nothing.',
      when: shelved,
      async keep(scope) {
        const { queue, near, far, message, settles } = scope
        const name = await queue()
        const sent = message()
        await kill(scope, name, sent)
        const redrives = [near, near, far].map((transport) =>
          present(transport.shelf).redrive(name, [sent.id], note),
        )
        const moves = await settles('three redrives', Promise.all(redrives))
        assert.deepEqual(moves.flat(), [sent.id])
        assert.equal(await present(far.shelf).get(name, sent.id), undefined)
        assert.equal((await present(far.browse).gauge(name)).depth, 1)
      },
    },
    {
      title: 'A redrive and a discard answer exactly the ids that were there.',
      when: shelved,
      async keep(scope) {
        const { queue, near, far, message } = scope
        const name = await queue()
        const [first, second] = [message(), message()]
        await kill(scope, name, first)
        await kill(scope, name, second)
        const shelf = present(far.shelf)
        assert.deepEqual(await shelf.redrive(name, ['no-such-id', first.id], note), [first.id])
        assert.deepEqual(await shelf.discard(name, [second.id, first.id], note), [second.id])
        assert.deepEqual(await shelf.redrive(name, [], note), [])
        assert.equal(await present(near.shelf).count(name, {}), 0)
      },
    },
    {
      title: 'A discarded dead letter is gone for good.',
      when: shelved,
      async keep(scope) {
        const { queue, near, far, message, subscribe, receive } = scope
        const name = await queue()
        const sent = message()
        await kill(scope, name, sent)
        await present(near.shelf).discard(name, [sent.id], note)
        assert.equal(await present(far.shelf).get(name, sent.id), undefined)
        assert.deepEqual(await receive(await subscribe(far, name)), [])
      },
    },
    {
      title: 'Who moved or removed what, and why, is on record, newest first.',
      when: shelved,
      async keep(scope) {
        const { queue, near, far, message, passes } = scope
        const name = await queue()
        const [first, second] = [message(), message()]
        await kill(scope, name, first)
        await kill(scope, name, second)
        await present(near.shelf).redrive(name, [first.id, 'no-such-id'], note)
        await passes(5)
        await present(near.shelf).discard(name, [second.id], { actor: 'ops', reason: 'a test' })
        const entries = await present(far.shelf).audit(name, 10)
        assert.deepEqual(
          entries.map(({ at: _, ...entry }) => ({ ...entry })),
          [
            { act: 'discard', queue: name, messageId: second.id, actor: 'ops', reason: 'a test' },
            { act: 'redrive', queue: name, messageId: first.id, ...note },
          ],
        )
        assert.equal((await present(far.shelf).audit(name, 1)).length, 1)
      },
    },
    {
      title: 'A redrive is not stopped by remembered keys.',
      when: (subject) => shelved(subject) && subject.traits.dedupe !== 'none',
      async keep(scope) {
        const { queue, far, message, subscribe, one } = scope
        const name = await queue()
        const windowMs = 3_600_000
        const sent = message({
          idempotencyKey: 'k',
          remember: [
            { kind: 'idempotency', key: 'k', fingerprint: 'f', windowMs },
            { kind: 'dedupe', key: 'k', fingerprint: undefined, windowMs },
          ],
        })
        await kill(scope, name, sent)
        assert.deepEqual(await present(far.shelf).redrive(name, [sent.id], note), [sent.id])
        assert.equal((await one(await subscribe(far, name))).envelope.id, sent.id)
      },
    },
    {
      title: 'A redrive is not stopped by a full queue.',
      when: (subject) => shelved(subject) && subject.traits.capacity === 'exact',
      async keep(scope) {
        const { queue, near, far, message, send } = scope
        const name = await queue({ maxDepth: 1 })
        const sent = message()
        await kill(scope, name, sent)
        await send(near, name, message())
        assert.deepEqual(await present(far.shelf).redrive(name, [sent.id], note), [sent.id])
        assert.equal((await present(far.browse).gauge(name)).depth, 2)
      },
    },
    {
      title: 'A redriven message can die again and be redriven again.',
      when: (subject) => shelved(subject) && subject.traits.keepsHistory,
      async keep(scope) {
        const { queue, near, far, message, subscribe, one, settle } = scope
        const name = await queue()
        const sent = message()
        await kill(scope, name, sent)
        const shelf = present(far.shelf)
        const subscription = await subscribe(near, name)
        await shelf.redrive(name, [sent.id], note)
        const delivery = await one(subscription)
        const reason = 'still no'
        await settle(subscription, { as: 'dead', delivery, reason, errorClass: 'permanent' })
        assert.equal((await shelf.get(name, sent.id))?.history.redrives, 1)
        await shelf.redrive(name, [sent.id], note)
        const last = await one(subscription)
        assert.equal(last.history.redrives, 2)
        assertAllOk(await settle(subscription, acked(last)))
      },
    },
  ],
}
