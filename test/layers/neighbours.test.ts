import assert from 'node:assert/strict'
import { test } from 'node:test'
import { virtualClock } from 'millrace/testing'
import { codeOf } from '../../src/conformance/acts.ts'
import { neighbours } from '../../src/layers/neighbours.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { handedOut } from '../runtime/handed-out.ts'
import {
  acked,
  bareRelease,
  crash,
  idsOf,
  LEASE_MS,
  receive,
  type Stage,
  stage,
  subscribe,
} from './crash-stage.ts'

const { signal } = new AbortController()

/** As of a broker that tells of a lost claim when it is asked, and not before. */
function unsignalled(delivery: Delivery): Delivery {
  return { ...delivery, claim: { ...delivery.claim, lost: signal } }
}

/** With a claim of its own, which the answer loses. */
function claimed(id: string) {
  const lost = new AbortController()
  const delivery = handedOut(id)
  const claim = { ...delivery.claim, lost: lost.signal }
  return { delivery: { ...delivery, claim }, lose: () => lost.abort() }
}

test('In hand is what is ours still: a lease from its last renewal on, unless it was settled or its claim was lost.', () => {
  const clock = virtualClock({ startMs: 0 })
  let now = 0
  const inHand = neighbours({ ...clock, now: () => now }, LEASE_MS)
  const [a, b] = [claimed('a'), claimed('b')]
  inHand.add([a.delivery])
  now = LEASE_MS - 1
  assert.equal(inHand.any(), true)
  inHand.add([a.delivery])
  now += LEASE_MS - 1
  assert.equal(inHand.any(), true)
  now += 1
  assert.equal(inHand.any(), false)
  inHand.add([a.delivery, b.delivery])
  b.lose()
  assert.equal(inHand.any(), true)
  inHand.remove(a.delivery)
  assert.equal(inHand.any(), false)
})

test('Of a log, whose messages share the claim of their lane, one is in hand until the last one is settled.', () => {
  const inHand = neighbours(virtualClock(), LEASE_MS)
  const first = { ...handedOut('a'), position: 1n }
  const second = { ...first, position: 2n }
  inHand.add([first, second])
  inHand.remove(first)
  assert.equal(inHand.any(), true)
  inHand.remove(second)
  assert.equal(inHand.any(), false)
})

/** One that must run alone comes to a holder that has another one in hand, and waits. */
async function suspectBehindOther(on: Stage) {
  const holder = await on.holder()
  const from = await subscribe(holder)
  await on.send(holder, 'other')
  const [other] = await receive(from)
  assert.ok(other)
  await on.send(holder, 'suspect')
  await crash(on, 1)
  await crash(on, 1)
  assert.deepEqual(await receive(from), [])
  return { holder, from, other }
}

test('A suspect that comes when something else is in hand waits, for as long as that is renewed.', async () => {
  const on = await stage()
  const { from, other } = await suspectBehindOther(on)
  for (let beats = 0; beats < 4; beats++) {
    await on.time.advance(LEASE_MS / 2)
    assert.deepEqual((await from.renew?.([other], LEASE_MS))?.map(codeOf), ['ok'])
    assert.deepEqual(await receive(from), [])
  }
  await from.settle([acked(other)])
  const [suspect] = await receive(from)
  assert.equal(suspect?.alone, true)
})

test('A renewal that comes too late, as it is no longer ours, keeps no suspect waiting.', async () => {
  const on = await stage(unsignalled)
  const { from, other } = await suspectBehindOther(on)
  await on.time.advance(LEASE_MS)
  assert.deepEqual((await from.renew?.([other], LEASE_MS))?.map(codeOf), ['lost'])
  assert.deepEqual(idsOf(await receive(from)), ['suspect'])
})

test('What could not be settled is in hand still.', async () => {
  const on = await stage()
  const { holder, from, other } = await suspectBehindOther(on)
  holder.isAway = true
  assert.deepEqual((await from.settle([acked(other)])).map(codeOf), ['unavailable'])
  assert.deepEqual(await receive(from), [])
  holder.isAway = false
  await from.settle([acked(other)])
  assert.deepEqual(idsOf(await receive(from)), ['suspect'])
})

test('A suspect that could not be marked, or asked about, is no neighbour of itself.', async () => {
  const on = await stage()
  const { holder, from, other } = await suspectBehindOther(on)
  await from.settle([acked(other)])
  holder.counting.fails = (call) => call === 'write'
  await assert.rejects(receive(from), /the store is away/)
  holder.counting.fails = () => false
  const [suspect] = await receive(from)
  assert.equal(suspect?.alone, true)
  await from.settle([bareRelease(suspect)])
  await from.close()

  const second = await on.holder()
  const elsewhere = await subscribe(second)
  second.counting.fails = (call) => call === 'read'
  await assert.rejects(receive(elsewhere), /the store is away/)
  second.counting.fails = () => false
  assert.deepEqual(idsOf(await receive(elsewhere)), ['suspect'])
})

test('A receive to which nothing comes but a suspect that waits ends in its time.', async () => {
  const on = await stage((delivery: Delivery) => ({ ...delivery, alone: true }))
  const holder = await on.holder()
  const from = await subscribe(holder, 10 * LEASE_MS)
  await on.send(holder, 'a')
  assert.deepEqual(idsOf(await receive(from)), ['a'])
  let came: readonly Delivery[] | undefined
  void from.receive({ max: 5, waitMs: 1_000, signal }).then((found) => {
    came = found
  })
  await on.time.advance(900)
  await on.send(holder, 'b')
  await on.time.advance(50)
  assert.equal(came, undefined)
  await on.time.advance(50)
  assert.deepEqual(came, [])
})

test('A holder that hears of its lost claim when it settles is no crash.', async () => {
  const on = await stage(unsignalled)
  const holder = await on.holder()
  await on.send(holder, 'a')
  await crash(on, 1)
  const from = await subscribe(holder)
  const [late] = await receive(from)
  assert.ok(late)
  await on.time.advance(LEASE_MS)
  assert.deepEqual((await from.settle([acked(late)])).map(codeOf), ['lost'])
  const [again] = await receive(await subscribe(await on.holder()))
  assert.deepEqual([again?.history.crashes, again?.alone], [0, false])
})
