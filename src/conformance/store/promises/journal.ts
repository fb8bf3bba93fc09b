import assert from 'node:assert/strict'
import type { AttemptHistory } from '../../../model/history.ts'
import { freshHistory } from '../../../model/history.ts'
import type { StoreFamily } from '../scope.ts'

const KEEP_MS = 3_600_000

const worn: AttemptHistory = {
  counted: 2,
  crashes: 1,
  throttledSince: 5,
  records: [{ at: 1, errorClass: 'crashed', code: 'C', message: 'gone\0 „€“' }],
  redrives: 1,
}

export const journal: StoreFamily = {
  name: 'store: journal',
  promises: [
    {
      title: 'What is written is read, one answer per id, in order.',
      async keep({ near, far, fresh }) {
        const queue = fresh()
        const entries = [
          { id: 'a', history: worn, runner: 'runner 1' },
          { id: 'b', history: freshHistory, runner: undefined },
        ]
        await near.journal.write(queue, entries, KEEP_MS)
        assert.deepEqual(await far.journal.read(queue, ['b', 'nobody', 'a', 'b']), [
          { history: freshHistory, runner: undefined },
          undefined,
          { history: worn, runner: 'runner 1' },
          { history: freshHistory, runner: undefined },
        ])
        assert.deepEqual(await far.journal.read(fresh(), ['a']), [undefined])
        assert.deepEqual(await far.journal.read(queue, []), [])
      },
    },
    {
      title: 'An entry is written whole, the last one counts.',
      async keep({ near, far, fresh }) {
        const queue = fresh()
        const entry = { id: 'a', history: freshHistory, runner: 'one' }
        await near.journal.write(queue, [entry], KEEP_MS)
        const later = { id: 'a', history: worn, runner: undefined }
        await far.journal.write(queue, [entry, later], KEEP_MS)
        assert.deepEqual(await near.journal.read(queue, ['a']), [
          { history: worn, runner: undefined },
        ])
      },
    },
    {
      title: 'A forgotten entry is gone; forgetting it again is harmless.',
      async keep({ near, far, fresh }) {
        const queue = fresh()
        await near.journal.write(queue, [{ id: 'a', history: worn, runner: 'r' }], KEEP_MS)
        await far.journal.forget(queue, ['a', 'nobody'])
        await near.journal.forget(queue, ['a'])
        assert.deepEqual(await near.journal.read(queue, ['a']), [undefined])
      },
    },
    {
      title: 'An entry is kept for its time, which begins again with every write.',
      async keep({ near, far, fresh, harness, leaseRunsOut }) {
        const queue = fresh()
        const [a, b] = ['a', 'b'].map((id) => ({ id, history: worn, runner: 'r' }))
        assert.ok(a && b)
        await near.journal.write(queue, [a, b], harness.leaseMs)
        await far.journal.write(queue, [b], KEEP_MS)
        await leaseRunsOut()
        assert.deepEqual(await far.journal.read(queue, ['a', 'b']), [
          undefined,
          { history: worn, runner: 'r' },
        ])
      },
    },
    {
      title: 'Writes and forgettings of the same ids in opposite order, at once, all end.',
      async keep({ near, far, fresh, settles, depth }) {
        const queue = fresh()
        const entries = Array.from({ length: 40 }, (_, at) => ({
          id: `m${at}`,
          history: worn,
          runner: undefined,
        }))
        const ids = entries.map(({ id }) => id)
        for (let round = 0; round < (depth === 'full' ? 50 : 5); round++) {
          const acts = [
            near.journal.write(queue, entries, KEEP_MS),
            far.journal.write(queue, entries.toReversed(), KEEP_MS),
            near.journal.forget(queue, ids.toReversed()),
            far.journal.forget(queue, ids),
          ]
          await settles('all acts', Promise.all(acts))
        }
        await near.journal.write(queue, entries, KEEP_MS)
        const found = await far.journal.read(queue, ids)
        assert.ok(found.every((entry) => entry !== undefined))
      },
    },
  ],
}
