import assert from 'node:assert/strict'
import { test } from 'node:test'
import { virtualClock } from 'millrace/testing'
import { openBell } from '../../../src/transport/bell.ts'

const never = new AbortController().signal

test('A ring wakes who waits for its queue, and a ring for all wakes everybody.', async () => {
  const bell = openBell<string>(virtualClock())
  const woken: string[] = []
  const wait = async (queue: string): Promise<void> => {
    await bell.wait(queue, bell.rings(queue), 1_000, never)
    woken.push(queue)
  }
  const a = wait('a')
  const b = wait('b')
  assert.equal(bell.waiting(), 2)
  bell.ring('b')
  await b
  assert.deepEqual(woken, ['b'])
  bell.ring()
  await a
  assert.deepEqual(woken, ['b', 'a'])
  assert.equal(bell.waiting(), 0)
})

test('A ring between looking and waiting is not missed, and one for another queue is no news.', async () => {
  const clock = virtualClock()
  const bell = openBell<number>(clock)
  const since = bell.rings(1)
  bell.ring(2)
  assert.equal(bell.rings(1), since)
  bell.ring(1)
  await bell.wait(1, since, 1_000, never)
  bell.ring()
  await bell.wait(1, since + 1, 1_000, never)
  assert.equal(clock.nextDueAt(), undefined)
})

test('A wait ends with its time, its signal or the bell, and leaves no timer behind.', async () => {
  const clock = virtualClock()
  const bell = openBell<number>(clock)
  const stop = new AbortController()
  const timed = bell.wait(1, 0, 50, never)
  await clock.advance(50)
  await timed
  const stopped = bell.wait(1, 0, 1_000, stop.signal)
  stop.abort()
  await stopped
  await bell.wait(1, 0, 1_000, stop.signal)
  const closed = bell.wait(1, 0, 1_000, never)
  bell.close()
  await closed
  assert.equal(bell.waiting(), 0)
  assert.equal(clock.nextDueAt(), undefined)
})
