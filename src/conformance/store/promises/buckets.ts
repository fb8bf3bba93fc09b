import assert from 'node:assert/strict'
import type { StoreFamily } from '../scope.ts'

/** So slow that nothing comes back while a test runs. */
const SLOW = { capacity: 10, refillPerSecond: 0.001 }

export const buckets: StoreFamily = {
  name: 'store: buckets',
  promises: [
    {
      title: 'A new bucket is full; tokens are taken all or none.',
      async keep({ near, far, fresh }) {
        const name = fresh()
        assert.deepEqual(await near.buckets.take(name, SLOW, 6), { taken: true, retryAfterMs: 0 })
        const refused = await far.buckets.take(name, SLOW, 5)
        assert.equal(refused.taken, false)
        assert.ok((refused.retryAfterMs ?? 0) > 900_000 && (refused.retryAfterMs ?? 0) <= 1_000_000)
        assert.equal((await far.buckets.take(name, SLOW, 4)).taken, true)
        assert.equal((await near.buckets.take(name, SLOW, 0)).taken, true)
        assert.equal((await near.buckets.take(fresh(), SLOW, 10)).taken, true)
      },
    },
    {
      title: 'More than the capacity is never there, and takes nothing.',
      async keep({ near, far, fresh }) {
        const name = fresh()
        const never = await near.buckets.take(name, SLOW, 11)
        assert.deepEqual(never, { taken: false, retryAfterMs: undefined })
        assert.equal((await far.buckets.take(name, SLOW, 10)).taken, true)
      },
    },
    {
      title: 'After the time that was answered the tokens are there.',
      async keep({ near, far, fresh, passes }) {
        const name = fresh()
        // A second for what is between the two: a busy server answered the second one after 400 ms.
        const rate = { capacity: 3, refillPerSecond: 2 }
        assert.equal((await near.buckets.take(name, rate, 3)).taken, true)
        const refused = await far.buckets.take(name, rate, 2)
        assert.equal(refused.taken, false)
        const waitMs = refused.retryAfterMs
        assert.ok(waitMs !== undefined && waitMs > 0 && waitMs <= 1_000, `${waitMs}`)
        await passes(waitMs)
        assert.equal((await far.buckets.take(name, rate, 2)).taken, true)
      },
    },
    {
      title: 'A bucket fills up to its capacity and no further.',
      async keep({ near, far, fresh, passes }) {
        const name = fresh()
        const rate = { capacity: 2, refillPerSecond: 20 }
        assert.equal((await near.buckets.take(name, rate, 1)).taken, true)
        await passes(400)
        assert.equal(
          (await far.buckets.take(name, { ...rate, refillPerSecond: 0.001 }, 2)).taken,
          true,
        )
        const slow = { ...rate, refillPerSecond: 0.001 }
        assert.equal((await near.buckets.take(name, slow, 1)).taken, false)
      },
    },
    {
      title: 'A bucket whose capacity shrank holds no more than that.',
      async keep({ near, far, fresh }) {
        const name = fresh()
        assert.equal((await near.buckets.take(name, SLOW, 1)).taken, true)
        const small = { ...SLOW, capacity: 2 }
        assert.equal((await far.buckets.take(name, small, 2)).taken, true)
        assert.equal((await near.buckets.take(name, small, 1)).taken, false)
      },
    },
    {
      title: 'A rate that is none is refused.',
      async keep({ near, fresh }) {
        const rates = [
          [{ ...SLOW, capacity: 0 }, 1],
          [{ ...SLOW, refillPerSecond: 0 }, 1],
          [{ ...SLOW, refillPerSecond: 1e-9 }, 1],
          [{ ...SLOW, refillPerSecond: Number.NaN }, 1],
          [SLOW, -1],
          [SLOW, Number.NaN],
        ] as const
        for (const [rate, tokens] of rates) {
          await assert.rejects(near.buckets.take(fresh(), rate, tokens), {
            code: 'MILLRACE_INVALID_OPTIONS',
          })
        }
      },
    },
    {
      title:
        'Of thirty that take one token at once, on two connections, as many get it as there are.',
      async keep({ near, far, fresh, settles }) {
        const name = fresh()
        const takes = Array.from({ length: 30 }, (_, at) =>
          (at % 2 === 0 ? near : far).buckets.take(name, SLOW, 1),
        )
        const answers = await settles('thirty takes', Promise.all(takes))
        assert.equal(answers.filter(({ taken }) => taken).length, 10)
      },
    },
  ],
}
