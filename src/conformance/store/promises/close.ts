import assert from 'node:assert/strict'
import type { Store } from '../../../store/store.ts'
import { holding, keyed, type StoreFamily } from '../scope.ts'

function calls(store: Store, name: string): readonly (() => Promise<unknown>)[] {
  const message = [holding('a', keyed('k'))]
  return [
    () => store.keys.reserve(name, message, 1_000),
    () => store.keys.confirm(name, message),
    () => store.keys.free(name, message),
    () => store.delayed.take(name, { max: 1, leaseMs: 1_000 }),
    () => store.delayed.count(name),
    () => store.shelf.list(name, { limit: 1 }),
    () => store.journal.read(name, ['a']),
    () => store.leases.acquire(name, 'h', 1_000),
    () => store.slots.acquire(name, { max: 1, maxPerKey: 1 }, [{ holder: 'h', key: 'k' }], 1_000),
    () => store.slots.count(name, 1),
    () => store.buckets.take(name, { capacity: 1, refillPerSecond: 1 }, 1),
    () => store.counters.add(name, 1, 1_000),
    () => store.states.read(name),
    () => store.prune(1),
  ]
}

export const close: StoreFamily = {
  name: 'store: close',
  promises: [
    {
      title: 'A closed store refuses every call as closed, and closing it again is harmless.',
      async keep({ connect, far, fresh, settles }) {
        const store = await connect()
        await settles('close', store.close())
        await settles('close again', store.close())
        for (const call of calls(store, fresh())) {
          await assert.rejects(call(), { code: 'MILLRACE_CLOSED' })
        }
        const error = await store.prune(1).catch((reason: unknown) => reason)
        const { code, outcome } = store.diagnose(error)
        assert.deepEqual({ code, outcome }, { code: 'unavailable', outcome: 'notApplied' })
        assert.equal(await far.counters.read(fresh()), 0)
      },
    },
    {
      title: 'A close while calls run settles, and so does each of them.',
      async keep({ connect, fresh, settles }) {
        const store = await connect()
        const running = [...calls(store, fresh()), ...calls(store, fresh())].map((call) =>
          call().catch(() => undefined),
        )
        await settles('close', store.close())
        await settles('the calls', Promise.all(running))
      },
    },
    {
      title: 'What a closed connection stored is there for the others.',
      async keep({ connect, far, fresh, message }) {
        const queue = fresh()
        const store = await connect()
        await store.delayed.put(queue, [{ envelope: message(), delayMs: 0 }])
        await store.close()
        assert.equal(await far.delayed.count(queue), 1)
      },
    },
  ],
}
