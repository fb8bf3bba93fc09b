import assert from 'node:assert/strict'
import { test } from 'node:test'
import { virtualClock } from 'millrace/testing'
import { pause } from '../../src/model/clock.ts'
import type { Settled } from '../../src/model/delivery.ts'
import { leaseKeeper } from '../../src/model/lease-keeper.ts'

interface One {
  readonly name: string
}

const one: One = { name: 'one' }
const other: One = { name: 'other' }
const LEASE_MS = 30_000
const away = (): Promise<never> => Promise.reject(new Error('connection reset'))

/** A keeper over a backend whose answers a test may replace, with what was asked and what was lost, and when. */
function scene(answer: (batch: readonly One[]) => Promise<readonly Settled[]>) {
  const clock = virtualClock()
  const from = clock.now()
  const seen = { asked: [] as number[], lost: [] as string[], errors: 0 }
  const backend = { answer }
  const keeper = leaseKeeper<One>({
    clock,
    leaseMs: LEASE_MS,
    renew: (batch) => {
      seen.asked.push(clock.now() - from)
      return backend.answer(batch)
    },
    onError: () => {
      seen.errors += 1
    },
  })
  const hold = (what: One): void =>
    keeper.hold(what, () => seen.lost.push(`${what.name} at ${clock.now() - from}`), clock.now())
  return { clock, keeper, seen, backend, hold }
}

test('what no renewal got through for is lost after a whole lease, not before; from the second failure on it is tried every tenth of a lease', async () => {
  const { clock, keeper, seen, hold } = scene(away)
  hold(one)
  await clock.advance(29_999)
  assert.deepEqual([seen.lost, keeper.isOver(one)], [[], false])
  assert.deepEqual(seen.asked, [10_000, 20_000, 23_000, 26_000, 29_000])
  assert.equal(keeper.failingSince !== undefined, true)
  await clock.advance(3_001)
  assert.deepEqual([seen.lost, seen.errors, keeper.failingSince], [['one at 32000'], 5, undefined])
  keeper.close()
})

test('a renewal counts from the moment in which it was asked for: its answer may have been long on its way', async () => {
  const { clock, keeper, seen, backend, hold } = scene(away)
  backend.answer = async (batch) => {
    await pause(clock, 9_000)
    backend.answer = away
    return batch.map(() => ({ ok: true }))
  }
  hold(one)
  // Asked for at 10,000, answered at 19,000.
  await clock.advance(39_999)
  assert.equal(keeper.isOver(one), false)
  await clock.advance(1)
  assert.equal(keeper.isOver(one), true)
  await clock.advance(3_000)
  assert.deepEqual(seen.lost, ['one at 42000'])
  keeper.close()
})

test('the answer says of each whether it is lost, and only that one is', async () => {
  const { clock, keeper, seen, hold } = scene(async (batch) =>
    batch.map(({ name }) =>
      name === 'other'
        ? { ok: false, fault: { code: 'lost', retryable: false, outcome: 'notApplied' } }
        : { ok: true },
    ),
  )
  hold(one)
  hold(other)
  await clock.advance(100_000)
  assert.deepEqual(seen.lost, ['other at 10000'])
  keeper.letGo(one)
  const asked = seen.asked.length
  await clock.advance(100_000)
  assert.equal(seen.asked.length, asked)
  keeper.close()
})

test('renewals that failed say nothing of what is held after a time with nothing in hand', async () => {
  const { clock, keeper, seen, hold } = scene(away)
  hold(one)
  await clock.advance(10_000)
  assert.notEqual(keeper.failingSince, undefined)
  keeper.letGo(one)
  await clock.advance(LEASE_MS)
  hold(other)
  assert.equal(keeper.failingSince, undefined)
  const { length } = seen.asked
  await clock.advance(9_999)
  assert.equal(seen.asked.length, length, 'and it is asked every third of a lease again')
  keeper.close()
})
