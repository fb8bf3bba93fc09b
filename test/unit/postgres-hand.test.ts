import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openHand } from '../../src/transports/postgres/hand.ts'
import { type Held, handOut } from '../../src/transports/postgres/held.ts'

/** One of a claim, as a row of the database tells of it. */
function held(seq: number, claimId: number): Held {
  const common = { body: Buffer.from('1'), headers: null, priority: 0, deliveries: 1, sent_at: 0 }
  return handOut({ ...common, id: `m-${seq}`, seq, claim_id: claimId, alone: false }, 0)
}

/** Two of claim 1 and one of claim 2. */
function scene() {
  const [a, b, c] = [held(1, 1), held(2, 1), held(3, 2)] as const
  const hand = openHand()
  hand.take([a, b])
  hand.take([c])
  return { hand, a, b, c }
}

test('A claim is renewed as a whole when all of it is, but for what is acked in a transaction.', () => {
  const { hand, a, b } = scene()
  assert.deepEqual([hand.isWhole(1, new Set([a, b])), hand.isWhole(1, new Set([a]))], [true, false])
  b.leaving = true
  assert.equal(hand.isWhole(1, new Set([a])), true)
  b.leaving = false
  hand.drop(b)
  assert.equal(hand.isWhole(1, new Set([a])), true)
})

test('A claim ends with the last that it has in hand, and what is not in hand ends none.', () => {
  const { hand, a, b, c } = scene()
  assert.deepEqual(hand.endedBy([a, c]), [2])
  assert.deepEqual(hand.endedBy([a, b]), [1])
  hand.drop(a)
  assert.deepEqual(hand.endedBy([a, b]), [1])
  hand.take([a])
  hand.drop(c)
  assert.deepEqual(hand.endedBy([c, b]), [])
  hand.move(b, 3)
  assert.deepEqual([b.claimId, hand.endedBy([a]), hand.endedBy([b])], [3, [1], [3]])
})

test('A claim of which all was acked in transactions is told once, and no other one.', () => {
  const { hand, a, b, c } = scene()
  a.leaving = true
  assert.deepEqual(hand.takeLeft(), [])
  b.leaving = true
  assert.deepEqual([hand.takeLeft(), hand.takeLeft()], [[1], []])
  assert.deepEqual([hand.empty(), hand.empty()], [[c], []])
})
