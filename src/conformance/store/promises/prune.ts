import assert from 'node:assert/strict'
import { freshHistory } from '../../../model/history.ts'
import type { Store } from '../../../store/store.ts'
import { holding, keyed, type StoreFamily } from '../scope.ts'

const LONG_MS = 3_600_000

async function pruneAll(store: Store): Promise<void> {
  for (;;) if ((await store.prune(100)) < 100) return
}

export const prune: StoreFamily = {
  name: 'store: prune',
  promises: [
    {
      title: 'Pruning removes what has ended, no more than asked for at once, and nothing else.',
      when: ({ traits }) => traits.ends === 'by prune',
      async keep({ near, far, fresh, harness, leaseRunsOut }) {
        await pruneAll(near)
        const queue = fresh()
        const ends = { windowMs: harness.leaseMs }
        const ending = Array.from({ length: 5 }, (_, at) =>
          holding(`m${at}`, keyed(`k${at}`, ends)),
        )
        await near.keys.confirm(queue, [...ending, holding('stays', keyed('stays'))])
        await near.keys.reserve(queue, [holding('r', keyed('r'))], harness.leaseMs)
        const entry = { history: freshHistory, runner: undefined }
        const twice = ['ends', 'ends too'].map((id) => ({ id, ...entry }))
        await near.journal.write(queue, twice, harness.leaseMs)
        await near.journal.write(queue, [{ id: 'stays', ...entry }], LONG_MS)
        await near.counters.add(fresh(), 1, harness.leaseMs)
        const counter = fresh()
        await near.counters.add(counter, 1, LONG_MS)
        const bucket = fresh()
        await near.buckets.take(bucket, { capacity: 1, refillPerSecond: 0.001 }, 1)
        const pool = fresh()
        const [ended, held] = ['ends', 'stays'].map((holder) => [{ holder, key: undefined }])
        const limits = { max: 2, maxPerKey: undefined }
        await near.slots.acquire(pool, limits, ended ?? [], harness.leaseMs)
        await near.slots.acquire(pool, limits, held ?? [], LONG_MS)
        await leaseRunsOut()
        assert.equal(await far.prune(3), 3)
        // Of keys three, so that the last one is of another kind.
        assert.equal(await far.prune(4), 4)
        assert.equal(await far.prune(100), 3)
        assert.equal(await far.prune(100), 0)
        assert.deepEqual(await far.keys.reserve(queue, [holding('n', keyed('stays'))], LONG_MS), [
          { as: 'duplicate', id: 'stays' },
        ])
        assert.deepEqual(await far.journal.read(queue, ['stays']), [entry])
        assert.equal(await far.counters.read(counter), 1)
        assert.equal((await far.slots.count(pool, 1)).held, 1)
        const tokens = await far.buckets.take(bucket, { capacity: 1, refillPerSecond: 0.001 }, 1)
        assert.equal(tokens.taken, false)
      },
    },
    {
      title: 'Delayed messages, dead letters and states are never pruned.',
      async keep({ near, far, fresh, message, letter, passes }) {
        const [queue, state] = [fresh(), fresh()]
        await near.delayed.put(queue, [{ envelope: message(), delayMs: 0 }])
        await near.shelf.put([letter(queue)])
        await near.states.swap(state, undefined, '1')
        await passes(20)
        await pruneAll(far)
        assert.equal(await far.delayed.count(queue), 1)
        assert.equal(await far.shelf.count(queue, {}), 1)
        assert.equal((await far.states.read(state))?.value, '1')
      },
    },
    {
      title: 'Several may prune at once, beside those that use what ends.',
      async keep({ near, far, fresh, settles }) {
        const queue = fresh()
        for (let round = 0; round < 5; round++) {
          const batch = Array.from({ length: 20 }, (_, at) =>
            holding(`${round} ${at}`, keyed(`k${at}`)),
          )
          const acts = [
            near.keys.reserve(queue, batch, 1),
            far.keys.reserve(queue, batch.toReversed(), 1),
            near.prune(10),
            far.prune(10),
            near.keys.reserve(queue, batch, 1),
          ]
          await settles('all acts', Promise.all(acts))
        }
      },
    },
  ],
}
