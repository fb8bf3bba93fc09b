import assert from 'node:assert/strict'
import type { Envelope } from '../../../model/envelope.ts'
import type { DelayedMessage, DueMessage } from '../../../store/delayed-messages.ts'
import type { StoreFamily } from '../scope.ts'

const HOUR_MS = 3_600_000
const TAKE = { max: 100, leaseMs: 60_000 }

function now(envelope: Envelope): DelayedMessage {
  return { envelope, delayMs: 0 }
}

function idsOf(messages: readonly DueMessage[]): readonly string[] {
  return messages.map(({ envelope }) => envelope.id)
}

export const delayed: StoreFamily = {
  name: 'store: delayed messages',
  promises: [
    {
      title: 'A message can be taken when its delay is over, not before, with all that it had.',
      async keep({ near, far, fresh, message, harness, passes, leaseRunsOut }) {
        const queue = fresh()
        const envelope = message({
          body: new Uint8Array([0, 255, 10, 128]),
          headers: { 'x-one': 'ünï „zwei“', two: '' },
          priority: 7,
          idempotencyKey: 'key',
          orderingKey: 'order',
        })
        await near.delayed.put(queue, [{ envelope, delayMs: harness.leaseMs }])
        assert.deepEqual(await far.delayed.take(queue, TAKE), [])
        await passes(0)
        await leaseRunsOut()
        const [taken] = await far.delayed.take(queue, TAKE)
        assert.ok(taken)
        assert.deepEqual(
          { ...taken.envelope, body: [...taken.envelope.body] },
          {
            ...envelope,
            body: [0, 255, 10, 128],
          },
        )
      },
    },
    {
      title: 'Those that are due are taken earliest first, up to the number asked for.',
      async keep({ near, far, fresh, message, passes }) {
        const queue = fresh()
        const [late, early, middle] = [message(), message(), message()]
        await near.delayed.put(queue, [
          { envelope: late, delayMs: 60 },
          { envelope: middle, delayMs: 40 },
          { envelope: early, delayMs: 20 },
        ])
        await passes(120)
        assert.deepEqual(idsOf(await far.delayed.take(queue, { ...TAKE, max: 2 })), [
          early.id,
          middle.id,
        ])
        assert.deepEqual(idsOf(await near.delayed.take(queue, { ...TAKE, max: 2 })), [late.id])
      },
    },
    {
      title: 'A taken message is nobody else’s until its time is over, and then comes back.',
      async keep({ near, far, fresh, message, harness, leaseRunsOut }) {
        const queue = fresh()
        const envelope = message()
        await near.delayed.put(queue, [now(envelope)])
        const short = { max: 10, leaseMs: harness.leaseMs }
        assert.deepEqual(idsOf(await near.delayed.take(queue, short)), [envelope.id])
        assert.deepEqual(await far.delayed.take(queue, TAKE), [])
        await leaseRunsOut()
        assert.deepEqual(idsOf(await far.delayed.take(queue, TAKE)), [envelope.id])
      },
    },
    {
      title: 'One that comes back is still before those that were due later.',
      async keep({ near, far, fresh, message, harness, passes, leaseRunsOut }) {
        const queue = fresh()
        const [first, second] = [message(), message()]
        await near.delayed.put(queue, [now(first)])
        await near.delayed.take(queue, { max: 1, leaseMs: harness.leaseMs })
        await passes(20)
        await near.delayed.put(queue, [now(second)])
        await leaseRunsOut()
        assert.deepEqual(idsOf(await far.delayed.take(queue, TAKE)), [first.id, second.id])
      },
    },
    {
      title: 'A message that was sent is gone; saying so again is harmless.',
      async keep({ near, far, fresh, message }) {
        const queue = fresh()
        await near.delayed.put(queue, [now(message()), now(message())])
        const taken = await near.delayed.take(queue, TAKE)
        await far.delayed.sent(queue, taken)
        await near.delayed.sent(queue, taken)
        assert.equal(await far.delayed.count(queue), 0)
      },
    },
    {
      title: 'An id that waits already is left as it is.',
      async keep({ near, far, fresh, message }) {
        const queue = fresh()
        const first = message({ headers: { n: '1' } })
        await near.delayed.put(queue, [now(first)])
        const again = { envelope: { ...first, headers: { n: '2' } }, delayMs: HOUR_MS }
        await far.delayed.put(queue, [again, again])
        const [taken] = await far.delayed.take(queue, TAKE)
        assert.deepEqual(taken?.envelope.headers, { n: '1' })
        assert.equal(await far.delayed.count(queue), 1)
        const [one, two] = ['1', '2'].map((n) => now(message({ id: 'twice', headers: { n } })))
        if (one && two) await near.delayed.put(queue, [one, two])
        assert.deepEqual((await far.delayed.get(queue, 'twice'))?.envelope.headers, { n: '1' })
      },
    },
    {
      title: 'A message that comes back while its taker still sends is kept when that one ends.',
      async keep({ near, far, fresh, message }) {
        const queue = fresh()
        const first = message({ headers: { attempt: '1' } })
        await near.delayed.put(queue, [now(first)])
        const taken = await near.delayed.take(queue, TAKE)
        await far.delayed.put(queue, [now({ ...first, headers: { attempt: '2' } })])
        await near.delayed.sent(queue, taken)
        const [again] = await far.delayed.take(queue, TAKE)
        assert.deepEqual(again?.envelope.headers, { attempt: '2' })
        const third = { ...first, body: new Uint8Array([3]), headers: { attempt: '3' } }
        await near.delayed.put(queue, [{ envelope: third, delayMs: HOUR_MS }])
        const late = await far.delayed.get(queue, first.id)
        assert.deepEqual([...(late?.envelope.body ?? [])], [3])
        assert.ok(late && late.dueAt >= again.dueAt + HOUR_MS)
        // It waits, as any other that nobody has taken.
        await far.delayed.put(queue, [now({ ...first, headers: { attempt: '4' } })])
        await far.delayed.sent(queue, [again])
        const kept = await near.delayed.get(queue, first.id)
        assert.deepEqual(kept?.envelope.headers, { attempt: '3' })
        assert.deepEqual(await near.delayed.take(queue, TAKE), [])
      },
    },
    {
      title: 'A message can be read and counted while it waits and after it was taken.',
      async keep({ near, far, fresh, message }) {
        const queue = fresh()
        const [late, due] = [message(), message()]
        await near.delayed.put(queue, [{ envelope: late, delayMs: HOUR_MS }, now(due)])
        const [taken] = await near.delayed.take(queue, TAKE)
        for (const one of [late, due]) {
          assert.equal((await far.delayed.get(queue, one.id))?.envelope.id, one.id)
        }
        assert.equal((await far.delayed.get(queue, due.id))?.dueAt, taken?.dueAt)
        assert.equal(await far.delayed.get(queue, 'nobody'), undefined)
        assert.equal(await far.delayed.get(fresh(), late.id), undefined)
        assert.equal(await far.delayed.count(queue), 2)
        assert.equal(await far.delayed.count(fresh()), 0)
      },
    },
    {
      title: 'Removed by id a message is gone, taken or not; the ids that were there are answered.',
      async keep({ near, far, fresh, message }) {
        const queue = fresh()
        const [late, due] = [message(), message()]
        await near.delayed.put(queue, [{ envelope: late, delayMs: HOUR_MS }, now(due)])
        await near.delayed.take(queue, TAKE)
        const ids = [due.id, 'nobody', late.id, due.id]
        assert.deepEqual((await far.delayed.remove(queue, ids)).toSorted(), [
          ...[due.id, late.id].toSorted(),
        ])
        assert.deepEqual(await near.delayed.remove(queue, ids), [])
        assert.equal(await near.delayed.count(queue), 0)
      },
    },
    {
      title: 'The time until the next one is told: none, some, or 0 when one is due.',
      async keep({ near, far, fresh, message }) {
        const queue = fresh()
        assert.equal(await near.delayed.nextDueMs(queue), undefined)
        await near.delayed.put(queue, [{ envelope: message(), delayMs: HOUR_MS }])
        const next = await far.delayed.nextDueMs(queue)
        assert.ok(next !== undefined && next > HOUR_MS / 2 && next <= HOUR_MS, `${next}`)
        await near.delayed.put(queue, [now(message())])
        assert.equal(await far.delayed.nextDueMs(queue), 0)
        await near.delayed.take(queue, TAKE)
        const back = await far.delayed.nextDueMs(queue)
        assert.ok(back !== undefined && back > 0 && back <= TAKE.leaseMs, `${back}`)
      },
    },
    {
      title: 'Takers on two connections, at once, never get the same message, and together all.',
      async keep({ near, far, fresh, message, settles }) {
        const queue = fresh()
        const all = Array.from({ length: 200 }, () => message())
        await near.delayed.put(queue, all.map(now))
        const taken: string[] = []
        const drain = async (store: typeof near): Promise<void> => {
          for (;;) {
            const some = await store.delayed.take(queue, { ...TAKE, max: 7 })
            if (some.length === 0) return
            taken.push(...idsOf(some))
          }
        }
        await settles('four takers', Promise.all([near, far, near, far].map(drain)))
        assert.equal(new Set(taken).size, taken.length)
        assert.deepEqual(taken.toSorted(), all.map(({ id }) => id).toSorted())
      },
    },
    {
      title: 'Puts and removals of the same ids in opposite order, at once, all end.',
      async keep({ near, far, fresh, message, settles, depth }) {
        const queue = fresh()
        const all = Array.from({ length: 40 }, () => now(message()))
        const ids = idsOf(all.map(({ envelope }) => ({ envelope, dueAt: 0 })))
        for (let round = 0; round < (depth === 'full' ? 50 : 5); round++) {
          const acts = [
            near.delayed.put(queue, all),
            far.delayed.put(queue, all.toReversed()),
            near.delayed.take(queue, TAKE).then((taken) => far.delayed.sent(queue, taken)),
            far.delayed.remove(queue, ids),
            near.delayed.remove(queue, ids.toReversed()),
          ]
          await settles('all acts', Promise.all(acts))
        }
        await near.delayed.remove(queue, ids)
        assert.equal(await far.delayed.count(queue), 0)
      },
    },
  ],
}
