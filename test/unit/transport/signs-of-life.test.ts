import assert from 'node:assert/strict'
import { test } from 'node:test'
import { virtualClock } from '../../../src/testing/virtual-clock.ts'
import { signsOfLife } from '../../../src/transport/signs-of-life.ts'

const PATIENCE_MS = 10_000
const HOUR_MS = 3_600_000

function watched() {
  const virtual = virtualClock()
  let setMs = 0
  const overs: number[] = []
  const signs = signsOfLife({
    clock: { now: () => virtual.now() + setMs },
    patienceMs: PATIENCE_MS,
    onOver: (ms) => overs.push(ms),
  })
  const set = (ms: number): void => {
    setMs += ms
  }
  const now = (): number => virtual.now() + setMs
  return { signs, overs, set, now, advance: virtual.advance }
}

test('what a server has in its memory is not over before nine tenths of its patience, and then at once', async () => {
  const { signs, overs, advance } = watched()
  await advance(8_999)
  assert.equal(signs.isOver(), false)
  await advance(1)
  assert.equal(signs.isOver(), true)
  assert.deepEqual(overs, [9_000])
})

test('an answer counts from its question on, because the server may have heard nothing since', async () => {
  const { signs, advance, now } = watched()
  const askedAt = now()
  await advance(8_000)
  signs.answered(askedAt)
  await advance(1_000)
  assert.equal(signs.isOver(), true)
})

test('what was said to be over stays over though the server answers, and is given up once', async () => {
  const { signs, overs, advance, now } = watched()
  await advance(9_500)
  assert.equal(signs.isOver(), true)
  signs.answered(now())
  assert.equal(signs.isOver(), true)
  assert.equal(overs.length, 1)
})

test('a silence in which nobody asked, and that the server has survived, is forgotten', async () => {
  const { signs, overs, advance, now } = watched()
  await advance(9_500)
  signs.answered(now())
  await advance(8_000)
  assert.equal(signs.isOver(), false)
  assert.deepEqual(overs, [])
})

test('a clock that is set back says nothing wrong, and is right again with the next answer', async () => {
  const { signs, set, advance, now } = watched()
  set(-HOUR_MS)
  assert.equal(signs.isOver(), false)
  signs.answered(now())
  await advance(9_000)
  assert.equal(signs.isOver(), true)
})

test('a clock that is set forward ends what is held then, and nothing that comes after', async () => {
  const { signs, set, overs, now } = watched()
  set(HOUR_MS)
  assert.equal(signs.isOver(), true)
  const next = signsOfLife({ clock: { now }, patienceMs: PATIENCE_MS, onOver: () => {} })
  assert.equal(next.isOver(), false)
  assert.deepEqual(overs, [HOUR_MS])
})
