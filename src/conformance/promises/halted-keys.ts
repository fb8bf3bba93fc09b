import assert from 'node:assert/strict'
import type { Envelope } from '../../model/envelope.ts'
import type { HaltedKeys } from '../../transport/halted-keys.ts'
import type { Subscription } from '../../transport/transport.ts'
import { acked, assertAllOk, died, idsOf, present } from '../acts.ts'
import type { Family, Subject } from '../promise.ts'
import type { Scope } from '../scope.ts'

const halts = ({ transport }: Subject): boolean => transport.haltedKeys !== undefined

const note = { actor: 'ops', reason: 'a test' } as const

interface Halted {
  readonly name: string
  readonly from: Subscription
  /** Of the far connection. */
  readonly keys: HaltedKeys
  /** The first one of its key has died, two wait. */
  readonly sent: readonly [Envelope, Envelope, Envelope]
}

/** Key `k`, whose first message has died. */
async function haltedQueue(scope: Scope): Promise<Halted> {
  const { queue, near, far, message, send, subscribe, one, settle } = scope
  const name = await queue({ onDead: 'halt-key' })
  const make = (): Envelope => message({ orderingKey: 'k' })
  const sent = [make(), make(), make()] as const
  await send(near, name, ...sent)
  const from = await subscribe(near, name)
  assertAllOk(await settle(from, died(await one(from))))
  return { name, from, sent, keys: present(far.haltedKeys) }
}

async function assertNext(scope: Scope, from: Subscription, ...due: Envelope[]): Promise<void> {
  for (const { id } of due) {
    const next = await scope.one(from)
    assert.equal(next.envelope.id, id)
    assertAllOk(await scope.settle(from, acked(next)))
  }
}

export const haltedKeys: Family = {
  name: 'halted keys',
  promises: [
    {
      title: 'A key whose head died stands still and is listed, and other keys go on.',
      when: halts,
      async keep(scope) {
        const { name, from, keys, sent } = await haltedQueue(scope)
        const later = scope.message({ orderingKey: 'k' })
        const other = scope.message({ orderingKey: 'o' })
        await scope.send(scope.near, name, later, other)
        await assertNext(scope, from, other)
        assert.deepEqual(idsOf(await scope.receive(from)), [])
        const found = await keys.get(name, 'k')
        assert.deepEqual([found?.key, found?.messageId, found?.waiting], ['k', sent[0].id, 3])
        assert.ok(Math.abs((found?.haltedAt ?? 0) - scope.now()) < 60_000)
        assert.deepEqual(await keys.list(name, { limit: 10 }), [found])
        assert.equal(await keys.get(name, 'o'), undefined)
      },
    },
    {
      title: 'A redrive of the dead head goes to the front of its key, which goes on then.',
      when: halts,
      async keep(scope) {
        const { name, from, keys, sent } = await haltedQueue(scope)
        const shelf = present(scope.far.shelf)
        assert.deepEqual(await shelf.redrive(name, [sent[0].id], note), [sent[0].id])
        assert.deepEqual(await keys.list(name, { limit: 10 }), [])
        await assertNext(scope, from, ...sent)
      },
    },
    {
      title: 'A key that is skipped goes on without its dead head, which stays a dead letter.',
      when: halts,
      async keep(scope) {
        const { name, from, keys, sent } = await haltedQueue(scope)
        assert.deepEqual(await keys.skip(name, ['k', 'k', 'unknown'], note), ['k'])
        assert.deepEqual(await keys.skip(name, ['k'], note), [])
        await assertNext(scope, from, sent[1], sent[2])
        const shelf = present(scope.far.shelf)
        assert.equal((await shelf.get(name, sent[0].id))?.envelope.id, sent[0].id)
        const [audit] = await shelf.audit(name, 1)
        assert.deepEqual([audit?.act, audit?.messageId, audit?.actor], ['skip', sent[0].id, 'ops'])
      },
    },
    {
      title: 'A discard of the dead head lets its key go on.',
      when: halts,
      async keep(scope) {
        const { name, from, keys, sent } = await haltedQueue(scope)
        await present(scope.far.shelf).discard(name, [sent[0].id], note)
        assert.deepEqual(await keys.list(name, { limit: 10 }), [])
        await assertNext(scope, from, sent[1], sent[2])
      },
    },
    {
      title: 'A key that is halted with nothing behind it halts what is sent later.',
      when: halts,
      async keep(scope) {
        const { name, from, keys, sent } = await haltedQueue(scope)
        await keys.skip(name, ['k'], note)
        await assertNext(scope, from, sent[1])
        assertAllOk(await scope.settle(from, died(await scope.one(from))))
        assert.equal((await keys.get(name, 'k'))?.waiting, 0)
        const later = scope.message({ orderingKey: 'k' })
        await scope.send(scope.near, name, later)
        assert.deepEqual(idsOf(await scope.receive(from)), [])
        await keys.skip(name, ['k'], note)
        await assertNext(scope, from, later)
      },
    },
    {
      title: 'Halted keys come by key, in pages that end.',
      when: halts,
      async keep(scope) {
        const { queue, near, far, message, send, subscribe, take, settle } = scope
        const name = await queue({ onDead: 'halt-key' })
        const names = ['a', 'B', 'c', 'ü', '0']
        await send(near, name, ...names.map((orderingKey) => message({ orderingKey })))
        const from = await subscribe(near, name)
        const came = await take(from, names.length)
        assertAllOk(await settle(from, ...came.map((delivery) => died(delivery))))
        const keys = present(far.haltedKeys)
        const listed: string[] = []
        for (;;) {
          const after = listed.at(-1)
          const page = await keys.list(name, {
            limit: 2,
            ...(after === undefined ? {} : { after }),
          })
          assert.ok(page.length <= 2)
          if (page.length === 0) break
          listed.push(...page.map(({ key }) => key))
        }
        assert.deepEqual(listed, names.toSorted())
      },
    },
    {
      title: 'Where deaths do not halt, a key goes on after one and none is listed.',
      when: halts,
      async keep(scope) {
        const { queue, near, far, message, send, subscribe, one, settle } = scope
        const name = await queue()
        const sent = [message({ orderingKey: 'k' }), message({ orderingKey: 'k' })] as const
        await send(near, name, ...sent)
        const from = await subscribe(near, name)
        assertAllOk(await settle(from, died(await one(from))))
        assert.deepEqual(await present(far.haltedKeys).list(name, { limit: 10 }), [])
        await assertNext(scope, from, sent[1])
      },
    },
  ],
}
