import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Deadline, deadlines } from '../../src/runtime/deadlines.ts'
import { virtualClock } from '../../src/testing/virtual-clock.ts'

const TIME_MS = 1_000

function open() {
  const clock = virtualClock()
  const due: { readonly deadline: Deadline; readonly at: number }[] = []
  const all = deadlines(clock, TIME_MS, (deadline) => void due.push({ deadline, at: clock.now() }))
  return { clock, due, all, from: clock.now() }
}

test('all that begin in one millisecond share a deadline, those of the next have another', async () => {
  const { clock, due, all, from } = open()
  const first = all.join(clock.now())
  assert.equal(all.join(clock.now()), first)
  await clock.advance(1)
  const next = all.join(clock.now())
  assert.notEqual(next, first)
  await clock.advance(TIME_MS)
  assert.deepEqual(due, [
    { deadline: first, at: from + TIME_MS },
    { deadline: next, at: from + 1 + TIME_MS },
  ])
})

test('a deadline is there while it concerns anybody, and leaves no timer behind', async () => {
  const { clock, due, all } = open()
  const deadline = all.join(clock.now())
  all.join(clock.now())
  all.leave(deadline)
  assert.equal(clock.nextDueAt(), clock.now() + TIME_MS)
  all.leave(deadline)
  assert.equal(clock.nextDueAt(), undefined)
  await clock.advance(2 * TIME_MS)
  assert.deepEqual(due, [])
})

test('who joins after everybody has left does not get the timer that was cleared', async () => {
  const { clock, due, all, from } = open()
  all.leave(all.join(clock.now()))
  const again = all.join(clock.now())
  await clock.advance(TIME_MS)
  assert.deepEqual(due, [{ deadline: again, at: from + TIME_MS }])
})

test('the time of who joins late runs from its beginning', async () => {
  const { clock, due, all, from } = open()
  await clock.advance(400)
  const deadline = all.join(from)
  await clock.advance(TIME_MS)
  assert.deepEqual(due, [{ deadline, at: from + TIME_MS }])
})
