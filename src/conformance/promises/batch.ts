import assert from 'node:assert/strict'
import type { Envelope } from '../../model/envelope.ts'
import { codeOf, idsOf } from '../acts.ts'
import type { Family, Subject } from '../promise.ts'
import type { Scope } from '../scope.ts'

const atomic = ({ traits }: Subject): boolean => traits.atomicBatch

/** Sends all or nothing, and looks from elsewhere that it was nothing. */
async function refusedWhole(
  scope: Scope,
  queue: string,
  batch: readonly Envelope[],
  waiting: readonly string[],
): Promise<readonly string[]> {
  const sent = await scope.near.send(queue, batch, { signal: scope.never, atomic: true })
  for (const outcome of sent) assert.equal(outcome.ok || outcome.fault.outcome, 'notApplied')
  const subscription = await scope.subscribe(scope.far, queue)
  assert.deepEqual(idsOf(await scope.take(subscription, waiting.length)), waiting)
  assert.deepEqual(await scope.receive(subscription), [])
  return sent.map(codeOf)
}

export const batch: Family = {
  name: 'batches',
  promises: [
    {
      title: 'Outcomes come in the order of the items.',
      async keep({ queue, near, message, send, never, traits }) {
        const name = await queue()
        const known = message()
        await send(near, name, known)
        const items = [message(), known, message()]
        const sent = await near.send(name, items, { signal: never })
        assert.deepEqual(
          sent.map((outcome) => [outcome.ok && outcome.id, codeOf(outcome)]),
          [
            [items[0]?.id, 'ok'],
            [known.id, traits.remembersIds ? 'duplicate' : 'ok'],
            [items[2]?.id, 'ok'],
          ],
        )
      },
    },
    {
      title: 'An empty batch stores nothing and answers nothing.',
      async keep({ queue, near, never }) {
        const name = await queue()
        assert.deepEqual(await near.send(name, [], { signal: never }), [])
        assert.deepEqual(await near.send(name, [], { signal: never, atomic: true }), [])
      },
    },
    {
      title: 'Without atomic, one bad item fails no other.',
      async keep({ queue, near, far, message, subscribe, take, receive, never, traits }) {
        const name = await queue()
        const tooLarge = message({ body: new Uint8Array(traits.limits.bodyBytes + 1) })
        const [before, after] = [message(), message()]
        const sent = await near.send(name, [before, tooLarge, after], { signal: never })
        assert.deepEqual(sent.map(codeOf), ['ok', 'tooLarge', 'ok'])
        const subscription = await subscribe(far, name)
        assert.deepEqual(
          [...idsOf(await take(subscription, 2))].sort(),
          [before.id, after.id].sort(),
        )
        assert.deepEqual(await receive(subscription), [])
      },
    },
    {
      title: 'Without atomic, a conflict fails no other.',
      when: ({ traits }) => traits.dedupe !== 'none',
      async keep({ queue, near, message, never }) {
        const name = await queue()
        const remember = (fingerprint: string): Partial<Envelope> => ({
          remember: [{ kind: 'idempotency', key: 'k', fingerprint, windowMs: 60_000 }],
        })
        const items = [message(remember('a')), message(remember('b')), message()]
        const sent = await near.send(name, items, { signal: never })
        assert.deepEqual(sent.map(codeOf), ['ok', 'conflict', 'ok'])
      },
    },
    {
      title: 'An atomic batch without a bad item is stored whole, duplicates answered as such.',
      when: atomic,
      async keep({ queue, near, far, message, send, never, subscribe, take }) {
        const name = await queue()
        const known = message()
        await send(near, name, known)
        const items = [message(), known, message()]
        const sent = await near.send(name, items, { signal: never, atomic: true })
        assert.deepEqual(sent.map(codeOf), ['ok', 'duplicate', 'ok'])
        assert.equal((await take(await subscribe(far, name), 3)).length, 3)
      },
    },
    {
      title: 'An atomic batch with a body that is too large stores nothing.',
      when: atomic,
      async keep(scope) {
        const name = await scope.queue()
        const body = new Uint8Array(scope.traits.limits.bodyBytes + 1)
        const items = [scope.message(), scope.message({ body }), scope.message()]
        const codes = await refusedWhole(scope, name, items, [])
        assert.deepEqual(codes, ['tooLarge', 'tooLarge', 'tooLarge'])
      },
    },
    {
      title: 'An atomic batch with a conflict stores nothing and remembers no key.',
      when: (subject) => atomic(subject) && subject.traits.dedupe !== 'none',
      async keep(scope) {
        const { message, near, never } = scope
        const name = await scope.queue()
        const remember = (key: string, fingerprint: string): Partial<Envelope> => ({
          remember: [{ kind: 'idempotency', key, fingerprint, windowMs: 60_000 }],
        })
        const first = message(remember('k', 'one'))
        await scope.send(near, name, first)
        const items = [message(remember('new', 'x')), message(remember('k', 'two')), message()]
        const codes = await refusedWhole(scope, name, items, [first.id])
        assert.deepEqual(codes, ['conflict', 'conflict', 'conflict'])
        const [free] = await near.send(name, [message(remember('new', 'y'))], { signal: never })
        assert.equal(free && codeOf(free), 'ok')
      },
    },
    {
      title: 'An atomic batch that does not fit into a full queue stores nothing.',
      when: (subject) => atomic(subject) && subject.traits.capacity === 'exact',
      async keep(scope) {
        const name = await scope.queue({ maxDepth: 3 })
        const first = scope.message()
        await scope.send(scope.near, name, first)
        const items = [scope.message(), scope.message(), scope.message()]
        const codes = await refusedWhole(scope, name, items, [first.id])
        assert.deepEqual(codes, ['full', 'full', 'full'])
      },
    },
  ],
}
