import assert from 'node:assert/strict'
import type { Reservation } from '../../../store/key-memory.ts'
import { holding, keyed, type StoreFamily } from '../scope.ts'

const HOLD_MS = 60_000

export const keys: StoreFamily = {
  name: 'store: keys',
  promises: [
    {
      title: 'Of two messages with one key only the first may be sent while it is reserved.',
      async keep({ near, far, fresh }) {
        const queue = fresh()
        const first = await near.keys.reserve(queue, [holding('a', keyed('k'))], HOLD_MS)
        assert.deepEqual(first, [{ as: 'reserved' }])
        const second = await far.keys.reserve(queue, [holding('b', keyed('k'))], HOLD_MS)
        assert.deepEqual(second, [{ as: 'held', id: 'a' }])
      },
    },
    {
      title: 'The id that holds a reservation may take it again, at any time.',
      async keep({ near, far, fresh }) {
        const queue = fresh()
        const message = holding('a', keyed('k'))
        await near.keys.reserve(queue, [message], HOLD_MS)
        assert.deepEqual(await far.keys.reserve(queue, [message], HOLD_MS), [{ as: 'reserved' }])
      },
    },
    {
      title: 'A confirmed key makes a duplicate of every later message, also of its own.',
      async keep({ near, far, fresh }) {
        const queue = fresh()
        await near.keys.reserve(queue, [holding('a', keyed('k'))], HOLD_MS)
        await near.keys.confirm(queue, [holding('a', keyed('k'))])
        const later = [holding('b', keyed('k')), holding('a', keyed('k'))]
        assert.deepEqual(await far.keys.reserve(queue, later, HOLD_MS), [
          { as: 'duplicate', id: 'a' },
          { as: 'duplicate', id: 'a' },
        ])
      },
    },
    {
      title: 'A confirmed idempotency key with another fingerprint is a conflict.',
      async keep({ near, far, fresh }) {
        const queue = fresh()
        await near.keys.confirm(queue, [holding('a', keyed('k', { fingerprint: 'one' }))])
        const other = [holding('b', keyed('k', { fingerprint: 'two' }))]
        assert.deepEqual(await far.keys.reserve(queue, other, HOLD_MS), [
          { as: 'conflict', id: 'a' },
        ])
        const none = [holding('b', keyed('k', { fingerprint: undefined }))]
        assert.deepEqual(await far.keys.reserve(queue, none, HOLD_MS), [
          { as: 'conflict', id: 'a' },
        ])
      },
    },
    {
      title: 'A reserved key with another fingerprint is held, because its send may still fail.',
      async keep({ near, far, fresh }) {
        const queue = fresh()
        await near.keys.reserve(queue, [holding('a', keyed('k'))], HOLD_MS)
        const other = [holding('b', keyed('k', { fingerprint: 'other' }))]
        assert.deepEqual(await far.keys.reserve(queue, other, HOLD_MS), [{ as: 'held', id: 'a' }])
      },
    },
    {
      title: 'A dedupe key does not look at the fingerprint, and kinds do not see each other.',
      async keep({ near, far, fresh }) {
        const queue = fresh()
        const dedupe = keyed('k', { kind: 'dedupe', fingerprint: undefined })
        await near.keys.confirm(queue, [holding('a', dedupe)])
        const asked = [
          holding('b', keyed('k', { kind: 'dedupe', fingerprint: 'x' })),
          holding('c', keyed('k')),
        ]
        assert.deepEqual(await far.keys.reserve(queue, asked, HOLD_MS), [
          { as: 'duplicate', id: 'a' },
          { as: 'reserved' },
        ])
      },
    },
    {
      title: 'Keys of one queue mean nothing in another; they are compared character by character.',
      async keep({ near, far, fresh }) {
        const [one, other] = [fresh(), fresh()]
        const spelled = ['key', 'KEY', 'key_', 'k%y', "k'y", 'k"y', 'k\\y', '{key}', 'ke', 'k,y']
        const batch = spelled.map((key, at) => holding(`m${at}`, keyed(key)))
        const reserved = spelled.map(() => ({ as: 'reserved' }))
        assert.deepEqual(await near.keys.reserve(one, batch, HOLD_MS), reserved)
        assert.deepEqual(await far.keys.reserve(other, batch, HOLD_MS), reserved)
      },
    },
    {
      title: 'A message takes all of its keys or none.',
      async keep({ near, far, fresh }) {
        const queue = fresh()
        await near.keys.reserve(queue, [holding('a', keyed('one'))], HOLD_MS)
        const both = holding('b', keyed('two', { kind: 'dedupe' }), keyed('one'))
        assert.deepEqual(await near.keys.reserve(queue, [both], HOLD_MS), [{ as: 'held', id: 'a' }])
        const rest = holding('c', keyed('two', { kind: 'dedupe' }))
        assert.deepEqual(await far.keys.reserve(queue, [rest], HOLD_MS), [{ as: 'reserved' }])
      },
    },
    {
      title: 'What is remembered decides before what is only reserved.',
      async keep({ near, far, fresh }) {
        const queue = fresh()
        await near.keys.reserve(queue, [holding('a', keyed('one'))], HOLD_MS)
        await near.keys.confirm(queue, [holding('b', keyed('two', { kind: 'dedupe' }))])
        const both = holding('c', keyed('one'), keyed('two', { kind: 'dedupe' }))
        assert.deepEqual(await far.keys.reserve(queue, [both], HOLD_MS), [
          { as: 'duplicate', id: 'b' },
        ])
      },
    },
    {
      title: 'A message that was stored is a duplicate of itself, whatever its other keys say.',
      async keep({ near, far, fresh }) {
        const queue = fresh()
        const own = keyed('own', { kind: 'dedupe' })
        await near.keys.confirm(queue, [holding('a', own), holding('b', keyed('k'))])
        const again = holding('a', keyed('k', { fingerprint: 'other' }), own)
        assert.deepEqual(await far.keys.reserve(queue, [again], HOLD_MS), [
          { as: 'duplicate', id: 'a' },
        ])
      },
    },
    {
      title: 'Messages of one batch count in their order; one without keys is always reserved.',
      async keep({ near, fresh }) {
        const queue = fresh()
        const batch = [
          holding('none'),
          holding('a', keyed('k')),
          holding('b', keyed('k')),
          holding('a', keyed('k')),
        ]
        assert.deepEqual(await near.keys.reserve(queue, batch, HOLD_MS), [
          { as: 'reserved' },
          { as: 'reserved' },
          { as: 'held', id: 'a' },
          { as: 'reserved' },
        ])
        assert.deepEqual(await near.keys.reserve(queue, [], HOLD_MS), [])
      },
    },
    {
      title: 'A freed key can be taken by another; a confirmed one and one of another stay.',
      async keep({ near, far, fresh }) {
        const queue = fresh()
        const [free, sure, others] = [keyed('free'), keyed('sure'), keyed('others')]
        await near.keys.reserve(queue, [holding('a', free), holding('b', others)], HOLD_MS)
        await near.keys.confirm(queue, [holding('a', sure)])
        await near.keys.free(queue, [holding('a', free, sure, others)])
        const asked = [free, sure, others].map((key, at) => holding(`m${at}`, key))
        assert.deepEqual(await far.keys.reserve(queue, asked, HOLD_MS), [
          { as: 'reserved' },
          { as: 'duplicate', id: 'a' },
          { as: 'held', id: 'b' },
        ])
      },
    },
    {
      title: 'A reservation ends after its time; then another may take it, or its own id again.',
      async keep({ near, far, fresh, harness, leaseRunsOut }) {
        const queue = fresh()
        const batch = [holding('a', keyed('one')), holding('b', keyed('two'))]
        await near.keys.reserve(queue, batch, harness.leaseMs)
        await leaseRunsOut()
        const asked = [holding('c', keyed('one')), holding('b', keyed('two'))]
        assert.deepEqual(await far.keys.reserve(queue, asked, HOLD_MS), [
          { as: 'reserved' },
          { as: 'reserved' },
        ])
      },
    },
    {
      title: 'A reservation that its id takes again lasts from then on.',
      async keep({ near, far, fresh, harness, leaseRunsOut }) {
        const queue = fresh()
        const message = holding('a', keyed('k'))
        await near.keys.reserve(queue, [message], harness.leaseMs)
        await near.keys.reserve(queue, [message], HOLD_MS)
        await leaseRunsOut()
        assert.deepEqual(await far.keys.reserve(queue, [holding('b', keyed('k'))], HOLD_MS), [
          { as: 'held', id: 'a' },
        ])
      },
    },
    {
      title: 'A key is remembered for its window from the confirmation on, and then forgotten.',
      async keep({ near, far, fresh, harness, leaseRunsOut }) {
        const queue = fresh()
        const short = keyed('k', { windowMs: harness.leaseMs })
        await near.keys.reserve(queue, [holding('a', short)], HOLD_MS)
        await near.keys.confirm(queue, [holding('a', short)])
        const asked = [holding('b', short)]
        const again = keyed('again', { windowMs: harness.leaseMs })
        await near.keys.confirm(queue, [holding('a', again)])
        const before = await far.keys.reserve(queue, asked, HOLD_MS)
        assert.deepEqual(before, [{ as: 'duplicate', id: 'a' }])
        await leaseRunsOut()
        assert.deepEqual(await far.keys.reserve(queue, asked, HOLD_MS), [{ as: 'reserved' }])
        // Also by a confirmation whose reservation has ended.
        await near.keys.confirm(queue, [holding('c', keyed('again'))])
        assert.deepEqual(await far.keys.reserve(queue, [holding('b', again)], HOLD_MS), [
          { as: 'duplicate', id: 'c' },
        ])
      },
    },
    {
      title: 'A confirmation holds without its reservation, and takes over one of another id.',
      async keep({ near, far, fresh }) {
        const queue = fresh()
        await near.keys.confirm(queue, [holding('a', keyed('gone'))])
        const others = keyed('taken', { fingerprint: 'other' })
        await near.keys.reserve(queue, [holding('other', others)], HOLD_MS)
        await near.keys.confirm(queue, [holding('b', keyed('taken'))])
        const asked = [holding('c', keyed('gone')), holding('d', keyed('taken'))]
        assert.deepEqual(await far.keys.reserve(queue, [...asked, holding('e', others)], HOLD_MS), [
          { as: 'duplicate', id: 'a' },
          { as: 'duplicate', id: 'b' },
          { as: 'conflict', id: 'b' },
        ])
      },
    },
    {
      title: 'A second confirmation, by whomever, changes nothing.',
      async keep({ near, far, fresh }) {
        const queue = fresh()
        await near.keys.confirm(queue, [holding('a', keyed('k'))])
        await far.keys.confirm(queue, [holding('b', keyed('k')), holding('a', keyed('k'))])
        await far.keys.confirm(queue, [holding('b', keyed('k'))])
        assert.deepEqual(await far.keys.reserve(queue, [holding('c', keyed('k'))], HOLD_MS), [
          { as: 'duplicate', id: 'a' },
        ])
      },
    },
    {
      title: 'Of twenty that reserve one key at once, on two connections, exactly one gets it.',
      async keep({ near, far, fresh, settles }) {
        const queue = fresh()
        const asks = Array.from({ length: 20 }, (_, at) =>
          (at % 2 === 0 ? near : far).keys.reserve(queue, [holding(`m${at}`, keyed('k'))], HOLD_MS),
        )
        const answers = (await settles('twenty reservations', Promise.all(asks))).flat()
        assert.equal(answers.filter(({ as }) => as === 'reserved').length, 1)
        const winner = `m${answers.findIndex(({ as }) => as === 'reserved')}`
        for (const answer of answers.filter(({ as }) => as !== 'reserved')) {
          assert.deepEqual(answer, { as: 'held', id: winner })
        }
      },
    },
    {
      title: 'Batches with the same keys in opposite order, at once, all get an answer.',
      async keep({ near, far, fresh, settles, depth }) {
        const rounds = depth === 'full' ? 50 : 5
        for (let round = 0; round < rounds; round++) {
          const queue = fresh()
          const names = Array.from({ length: 40 }, (_, at) => `k${at}`)
          const batch = (id: string, order: readonly string[]) =>
            order.map((key) => holding(`${id}${key}`, keyed(key), keyed(key, { kind: 'dedupe' })))
          const there = batch('a', names)
          const back = batch('b', names.toReversed())
          const both = Promise.all([
            near.keys.reserve(queue, there, HOLD_MS),
            far.keys.reserve(queue, back, HOLD_MS),
            near.keys.confirm(queue, there),
            far.keys.confirm(queue, back),
            near.keys.free(queue, back),
            far.keys.free(queue, there),
          ])
          const [one, other] = await settles('batches in both orders', both)
          assert.equal(one.length, 40)
          assert.ok(one.every((answer, at) => differs(answer, other[39 - at])))
        }
      },
    },
  ],
}

/** Two reservations of one key: both got it only if one of them was freed or confirmed in between. */
function differs(one: Reservation, other: Reservation | undefined): boolean {
  return other !== undefined && !(one.as === 'conflict' || other.as === 'conflict')
}
