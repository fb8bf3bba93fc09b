import assert from 'node:assert/strict'
import type { Store } from '../../../store/store.ts'
import { holding, keyed, type StoreFamily } from '../scope.ts'

export const diagnose: StoreFamily = {
  name: 'store: faults and bounds',
  promises: [
    {
      title: 'Whatever was thrown, diagnose names a fault of a store and never throws itself.',
      async keep({ near }) {
        const cyclic: { self?: unknown } = {}
        cyclic.self = cyclic
        for (const error of [new Error('no'), 'text', 7, null, undefined, cyclic]) {
          const fault = near.diagnose(error)
          assert.equal(typeof fault.code, 'string')
          assert.equal(typeof fault.retryable, 'boolean')
          assert.ok(fault.outcome === 'notApplied' || fault.outcome === 'unknown')
        }
      },
    },
    {
      title: 'A call beyond a bound does nothing and is diagnosed as invalid.',
      async keep({ near, fresh, message, letter, traits }) {
        const queue = fresh()
        const { batch, bodyBytes } = traits.limits
        const tooMany = Array.from({ length: batch + 1 }, (_, at) => `${at}`)
        const big = message({ body: new Uint8Array(bodyBytes + 1) })
        const calls = [
          near.delayed.remove(queue, tooMany),
          near.delayed.put(queue, [{ envelope: message(), delayMs: Number.NaN }]),
          near.delayed.put(queue, [
            { envelope: message(), delayMs: 0 },
            { envelope: big, delayMs: 0 },
          ]),
          near.shelf.put([letter(queue), letter(queue, { envelope: big })]),
          near.keys.reserve('', [holding('a', keyed('k'))], 1),
          near.keys.reserve(queue, [holding('a', keyed('k\0'))], 1),
          near.keys.reserve(queue, [holding('x'.repeat(256), keyed('k'))], 1),
          near.leases.acquire('x'.repeat(513), 'h', 1),
          near.slots.acquire(queue, { max: 0, maxPerKey: undefined }, [], 1),
          near.slots.acquire(queue, { max: 1, maxPerKey: 1.5 }, [], 1),
          near.slots.acquire(queue, { max: 1, maxPerKey: 1 }, [{ holder: 'h', key: '' }], 1),
          near.prune(0),
        ]
        for (const call of calls) {
          const error: unknown = await call.then(
            () => assert.fail('expected the call to be refused'),
            (reason: unknown) => reason,
          )
          const { code, retryable, outcome } = near.diagnose(error)
          assert.deepEqual({ code, retryable, outcome }, refusal)
        }
        assert.equal(await near.delayed.count(queue), 0)
        assert.equal(await near.shelf.count(queue, {}), 0)
      },
    },
    {
      title: 'A batch and a body of the largest size are taken.',
      async keep({ near, far, fresh, message, traits }) {
        const queue = fresh()
        const { batch, bodyBytes } = traits.limits
        const keys = Array.from({ length: batch }, (_, at) => holding(`m${at}`, keyed(`k${at}`)))
        const answers = await near.keys.reserve(queue, keys, 1_000)
        assert.ok(answers.every(({ as }) => as === 'reserved'))
        const envelope = message({ body: new Uint8Array(bodyBytes).fill(7) })
        await near.delayed.put(queue, [{ envelope, delayMs: 0 }])
        const found = await far.delayed.get(queue, envelope.id)
        assert.equal(found?.envelope.body.byteLength, bodyBytes)
      },
    },
    {
      title: 'While the backend is away calls fail as unavailable, and work once it is back.',
      when: ({ harness }) => harness.outage !== undefined,
      async keep({ near, fresh, harness, until }) {
        const name = fresh()
        await harness.outage?.cut()
        try {
          const error: unknown = await near.counters.add(name, 1, 60_000).then(
            () => undefined,
            (reason: unknown) => reason,
          )
          assert.equal(near.diagnose(error).code, 'unavailable')
        } finally {
          await harness.outage?.restore()
        }
        await until('the store works again', () => works(near, name))
      },
    },
  ],
}

const refusal = { code: 'invalid', retryable: false, outcome: 'notApplied' }

async function works(store: Store, name: string): Promise<boolean> {
  return await store.counters.read(name).then(
    () => true,
    () => false,
  )
}
