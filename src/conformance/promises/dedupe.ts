import assert from 'node:assert/strict'
import type { Envelope, RememberedKey } from '../../model/envelope.ts'
import { acked, codeOf, died, idsOf, present } from '../acts.ts'
import type { Family, Subject } from '../promise.ts'

const HOUR_MS = 3_600_000
const dedupes = ({ traits }: Subject): boolean => traits.dedupe !== 'none'
const anyWindow = ({ traits }: Subject): boolean =>
  traits.dedupe !== 'none' && traits.dedupe.windowMs === 'any'

function keyed(key: string, fingerprint = 'same', windowMs = HOUR_MS): Pick<Envelope, 'remember'> {
  return { remember: [{ kind: 'idempotency', key, fingerprint, windowMs }] }
}

function deduped(key: string, windowMs = HOUR_MS): Pick<Envelope, 'remember'> {
  const remembered: RememberedKey = { kind: 'dedupe', key, fingerprint: undefined, windowMs }
  return { remember: [remembered] }
}

export const dedupe: Family = {
  name: 'dedupe',
  promises: [
    {
      title:
        'The same idempotency key with the same payload stores nothing and answers the first id.',
      when: dedupes,
      async keep({ queue, near, far, message, send, subscribe, take, receive, never }) {
        const name = await queue()
        const first = message(keyed('k'))
        await send(near, name, first)
        const sent = await far.send(name, [message(keyed('k'))], { signal: never })
        assert.deepEqual(sent, [{ ok: true, id: first.id, duplicate: true }])
        const subscription = await subscribe(far, name)
        await take(subscription, 1)
        assert.deepEqual(await receive(subscription), [])
      },
    },
    {
      title: 'The same idempotency key with another payload is a conflict that names the first id.',
      when: dedupes,
      async keep({ queue, near, far, message, send, subscribe, take, receive, never }) {
        const name = await queue()
        const first = message(keyed('k', 'one'))
        await send(near, name, first)
        const [sent] = await far.send(name, [message(keyed('k', 'two'))], { signal: never })
        assert.ok(sent && !sent.ok)
        assert.equal(sent.fault.code, 'conflict')
        assert.equal(sent.fault.retryable, false)
        assert.equal(sent.fault.outcome, 'notApplied')
        assert.equal(sent.fault.id, first.id)
        const subscription = await subscribe(far, name)
        await take(subscription, 1)
        assert.deepEqual(await receive(subscription), [])
      },
    },
    {
      title: 'A dedupe key does not look at the payload.',
      when: dedupes,
      async keep({ queue, near, far, message, send, never }) {
        const name = await queue()
        const first = message(deduped('k'))
        await send(near, name, first)
        const body = new TextEncoder().encode('another payload')
        const sent = await far.send(name, [message({ ...deduped('k'), body })], { signal: never })
        assert.deepEqual(sent, [{ ok: true, id: first.id, duplicate: true }])
      },
    },
    {
      title: 'Idempotency keys and dedupe keys do not see each other.',
      when: dedupes,
      async keep({ queue, near, message, never }) {
        const name = await queue()
        const sent = await near.send(name, [message(keyed('k')), message(deduped('k'))], {
          signal: never,
        })
        assert.deepEqual(sent.map(codeOf), ['ok', 'ok'])
      },
    },
    {
      title: 'A message may carry one key of each kind; either one finds it again.',
      when: dedupes,
      async keep({ queue, near, far, message, send, never }) {
        const name = await queue()
        const remember = [...present(keyed('a').remember), ...present(deduped('b').remember)]
        const first = message({ remember })
        await send(near, name, first)
        for (const again of [keyed('a'), deduped('b')]) {
          const [sent] = await far.send(name, [message(again)], { signal: never })
          assert.deepEqual(sent, { ok: true, id: first.id, duplicate: true })
        }
        // One of its keys is taken, so it is not stored; its other key must not be remembered for it.
        const half = [...present(keyed('c').remember), ...present(deduped('b').remember)]
        const [known] = await far.send(name, [message({ remember: half })], { signal: never })
        assert.deepEqual(known, { ok: true, id: first.id, duplicate: true })
        const fresh = message(keyed('c'))
        const [stored] = await near.send(name, [fresh], { signal: never })
        assert.deepEqual(stored, { ok: true, id: fresh.id, duplicate: false })
      },
    },
    {
      title: 'Keys of one queue mean nothing in another.',
      when: dedupes,
      async keep({ queue, near, far, message, send, never }) {
        await send(near, await queue(), message(keyed('k')))
        const [sent] = await far.send(await queue(), [message(keyed('k'))], { signal: never })
        assert.equal(sent && codeOf(sent), 'ok')
      },
    },
    {
      title: 'Keys are compared character by character, case included.',
      when: dedupes,
      async keep({ queue, near, message, never }) {
        const name = await queue()
        const keys = ['key', 'KEY', 'key_', 'k%y', "k'y", 'ke']
        const sent = await near.send(
          name,
          keys.map((key) => message(keyed(key))),
          { signal: never },
        )
        assert.deepEqual(
          sent.map(codeOf),
          keys.map(() => 'ok'),
        )
      },
    },
    {
      title: 'When its window has ended a key is free again.',
      when: anyWindow,
      async keep({ queue, near, far, message, send, passes, never }) {
        const name = await queue()
        await send(near, name, message(keyed('i', 'one', 500)), message(deduped('d', 500)))
        await passes(700)
        // The second window must not end while we ask, however slow the machine is.
        const again = [message(keyed('i', 'two', 500)), message(deduped('d', 60_000))]
        const sent = await far.send(name, again, { signal: never })
        assert.deepEqual(sent.map(codeOf), ['ok', 'ok'])
        const third = await near.send(name, [message(deduped('d', 60_000))], { signal: never })
        assert.deepEqual(third, [{ ok: true, id: again[1]?.id, duplicate: true }])
      },
    },
    {
      title: 'A key is remembered after its message was acked.',
      when: dedupes,
      async keep({ queue, near, far, message, send, subscribe, one, settle, never }) {
        const name = await queue()
        const first = message(keyed('k'))
        await send(near, name, first)
        const subscription = await subscribe(near, name)
        await settle(subscription, acked(await one(subscription)))
        const sent = await far.send(name, [message(keyed('k'))], { signal: never })
        assert.deepEqual(sent, [{ ok: true, id: first.id, duplicate: true }])
      },
    },
    {
      title: 'A key is remembered after its message died.',
      when: (subject) => dedupes(subject) && subject.traits.deadLetters === 'native',
      async keep({ queue, near, far, message, send, subscribe, one, settle, never }) {
        const name = await queue()
        const first = message(deduped('k'))
        await send(near, name, first)
        const subscription = await subscribe(near, name)
        await settle(subscription, died(await one(subscription)))
        const sent = await far.send(name, [message(deduped('k'))], { signal: never })
        assert.deepEqual(sent, [{ ok: true, id: first.id, duplicate: true }])
      },
    },
    {
      title: 'Of twenty concurrent senders of one key, on two connections, exactly one stores.',
      when: dedupes,
      async keep({ queue, near, far, message, settles, subscribe, take, receive, never }) {
        const name = await queue()
        const sends = Array.from({ length: 20 }, (_, at) =>
          (at % 2 === 0 ? near : far).send(name, [message(keyed('k'))], { signal: never }),
        )
        const sent = (await settles('twenty sends', Promise.all(sends))).flat()
        assert.equal(sent.filter((outcome) => codeOf(outcome) === 'ok').length, 1)
        assert.equal(sent.filter((outcome) => codeOf(outcome) === 'duplicate').length, 19)
        assert.equal(new Set(sent.map((outcome) => outcome.ok && outcome.id)).size, 1)
        const subscription = await subscribe(far, name)
        await take(subscription, 1)
        assert.deepEqual(await receive(subscription), [])
      },
    },
    {
      title: 'Two senders whose batches hold the same keys in opposite order both get an answer.',
      when: dedupes,
      async keep({ queue, near, far, message, settles, never }) {
        const name = await queue()
        const keys = Array.from({ length: 50 }, (_, at) => `k${at}`)
        const batch = (order: readonly string[]): Envelope[] =>
          order.map((key) => message(keyed(key)))
        const both = Promise.all([
          near.send(name, batch(keys), { signal: never }),
          far.send(name, batch([...keys].reverse()), { signal: never }),
        ])
        const codes = (await settles('both batches', both)).flat().map(codeOf)
        assert.equal(codes.filter((code) => code === 'ok').length, 50)
        assert.equal(codes.filter((code) => code === 'duplicate').length, 50)
      },
    },
    {
      title: 'Duplicates within one batch are found: by key and by id.',
      when: dedupes,
      async keep({ queue, near, far, message, never, subscribe, take, receive, traits }) {
        const name = await queue()
        const [one, two] = [message(keyed('k', 'one')), message()]
        const batch = [one, message(keyed('k', 'one')), two, two, message(keyed('k', 'other'))]
        const sent = await near.send(name, batch, { signal: never })
        const again = traits.remembersIds ? 'duplicate' : 'ok'
        assert.deepEqual(sent.map(codeOf), ['ok', 'duplicate', 'ok', again, 'conflict'])
        assert.deepEqual(sent[1], { ok: true, id: one.id, duplicate: true })
        const subscription = await subscribe(far, name)
        // Without a memory for ids the second `two` may be stored, and nobody is told whether it was.
        const came = [...(await take(subscription, 2)), ...(await receive(subscription))]
        assert.deepEqual(new Set(idsOf(came)), new Set([one.id, two.id]))
        if (traits.remembersIds) assert.equal(came.length, 2)
      },
    },
  ],
}
