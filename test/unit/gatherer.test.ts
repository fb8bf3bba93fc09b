import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gatherer } from '../../src/runtime/gatherer.ts'
import { virtualClock } from '../../src/testing/virtual-clock.ts'

test('calls of one turn go together, and what comes meanwhile goes with the next', async () => {
  const batches: number[][] = []
  let release: () => void = () => undefined
  const gate = new Promise<void>((resolve) => {
    release = resolve
  })
  const gathered = gatherer<number, number>({
    maxBatch: 100,
    flush: async (items) => {
      batches.push([...items])
      if (batches.length === 1) await gate
      return items.map((n) => n * 2)
    },
  })
  const first = [1, 2, 3].map((n) => gathered.add(n))
  await Promise.resolve()
  const second = [4, 5].map((n) => gathered.add(n))
  assert.equal(gathered.size, 5)
  release()
  assert.deepEqual(await Promise.all([...first, ...second]), [2, 4, 6, 8, 10])
  assert.deepEqual(batches, [
    [1, 2, 3],
    [4, 5],
  ])
  assert.equal(gathered.size, 0)
})

test('a batch is never larger than its bound', async () => {
  const sizes: number[] = []
  const gathered = gatherer<number, number>({
    maxBatch: 10,
    flush: async (items) => {
      sizes.push(items.length)
      return [...items]
    },
  })
  await Promise.all(Array.from({ length: 25 }, (_, n) => gathered.add(n)))
  assert.deepEqual(sizes, [10, 10, 5])
})

test('a failed flush fails its own items and no others', async () => {
  let flushes = 0
  const gathered = gatherer<number, number>({
    maxBatch: 1,
    flush: async (items) => {
      flushes++
      if (flushes === 1) throw new Error('gone')
      return [...items]
    },
  })
  const results = await Promise.allSettled([gathered.add(1), gathered.add(2)])
  assert.deepEqual(
    results.map((result) => result.status),
    ['rejected', 'fulfilled'],
  )
})

test('what is put goes with what is added, and is told one thing', async () => {
  const batches: number[][] = []
  const gathered = gatherer<number, number>({
    maxBatch: 2,
    flush: async (items) => {
      batches.push([...items])
      if (items.includes(3)) throw new Error('gone')
      return [...items]
    },
  })
  const told: unknown[] = []
  gathered.put(1, (result) => told.push(result))
  assert.equal(told.length, 0)
  assert.equal(await gathered.add(2), 2)
  gathered.put(
    3,
    (result) => told.push(result),
    (error) => told.push(error),
  )
  await assert.rejects(gathered.add(4), /gone/)
  assert.deepEqual(batches, [
    [1, 2],
    [3, 4],
  ])
  assert.deepEqual(told, [1, new Error('gone')])
})

test('with patience a flush that takes too long holds up no later one, up to a bound', async () => {
  const clock = virtualClock()
  const started: number[] = []
  const ends = new Map<number, () => void>()
  const gathered = gatherer<number, number>({
    maxBatch: 10,
    flush: async (items) => {
      started.push(...items)
      await new Promise<void>((resolve) => ends.set(items[0] ?? 0, resolve))
      return [...items]
    },
    patience: { clock, ms: 1_000, flights: 2 },
  })
  const results = [1, 2, 3].map((n) => gathered.add(n))
  await clock.advance(900)
  assert.deepEqual(started, [1, 2, 3])
  const more = [4, 5].map((n) => gathered.add(n))
  await clock.advance(200)
  assert.deepEqual(started, [1, 2, 3, 4, 5])
  const last = gathered.add(6)
  await clock.advance(5_000)
  assert.deepEqual(started, [1, 2, 3, 4, 5], 'no more than two side by side')
  ends.get(1)?.()
  await clock.advance(0)
  assert.deepEqual(started, [1, 2, 3, 4, 5, 6])
  ends.get(4)?.()
  ends.get(6)?.()
  assert.deepEqual(await Promise.all([...results, ...more, last]), [1, 2, 3, 4, 5, 6])
  await clock.advance(0)
  assert.equal(gathered.size, 0)
  assert.equal(clock.nextDueAt(), undefined)
})

test('a flush that answers for fewer than it got rejects all of them, and the next call goes on', async () => {
  let fewer = 1
  const gathered = gatherer<number, number>({
    maxBatch: 10,
    flush: async (items) => items.slice(fewer),
  })
  const both = await Promise.allSettled([gathered.add(1), gathered.add(2)])
  assert.deepEqual(
    both.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  fewer = 0
  // In a turn in which no flush is under way any more.
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(await gathered.add(3), 3)
})
