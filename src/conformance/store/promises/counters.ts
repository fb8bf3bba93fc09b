import assert from 'node:assert/strict'
import type { StoreFamily } from '../scope.ts'

const KEEP_MS = 3_600_000

export const counters: StoreFamily = {
  name: 'store: counters',
  promises: [
    {
      title: 'A counter begins at 0, answers its sum, and is read by all.',
      async keep({ near, far, fresh }) {
        const name = fresh()
        assert.equal(await near.counters.read(name), 0)
        assert.equal(await near.counters.add(name, 5, KEEP_MS), 5)
        assert.equal(await far.counters.add(name, -7, KEEP_MS), -2)
        assert.equal(await far.counters.add(name, 0, KEEP_MS), -2)
        assert.equal(await near.counters.read(name), -2)
        assert.equal(await near.counters.read(fresh()), 0)
      },
    },
    {
      title:
        'A period ends as long after its first use as that one said, and the next begins at 0.',
      async keep({ near, far, fresh, harness, leaseRunsOut }) {
        const name = fresh()
        await near.counters.add(name, 5, harness.leaseMs)
        await far.counters.add(name, 5, KEEP_MS)
        await leaseRunsOut()
        assert.equal(await near.counters.read(name), 0)
        assert.equal(await far.counters.add(name, 1, KEEP_MS), 1)
        await leaseRunsOut()
        assert.equal(await near.counters.read(name), 1)
      },
    },
    {
      title: 'A counter stops at the largest numbers that are exact.',
      async keep({ near, far, fresh }) {
        const name = fresh()
        const { MAX_SAFE_INTEGER: max, MIN_SAFE_INTEGER: min } = Number
        assert.equal(await near.counters.add(name, max, KEEP_MS), max)
        assert.equal(await far.counters.add(name, max, KEEP_MS), max)
        assert.equal(await far.counters.add(name, min, KEEP_MS), 0)
        assert.equal(await far.counters.add(name, min, KEEP_MS), min)
        assert.equal(await near.counters.add(name, -1, KEEP_MS), min)
        assert.equal(await far.counters.read(name), min)
        await assert.rejects(near.counters.add(name, 0.5, KEEP_MS), {
          code: 'MILLRACE_INVALID_OPTIONS',
        })
      },
    },
    {
      title: 'Nothing is lost when forty count at once, on two connections.',
      async keep({ near, far, fresh, settles }) {
        const name = fresh()
        const adds = Array.from({ length: 40 }, (_, at) =>
          (at % 2 === 0 ? near : far).counters.add(name, 1, KEEP_MS),
        )
        const sums = await settles('forty adds', Promise.all(adds))
        assert.deepEqual(
          sums.toSorted((a, b) => a - b),
          Array.from({ length: 40 }, (_, at) => at + 1),
        )
        assert.equal(await far.counters.read(name), 40)
      },
    },
  ],
}
