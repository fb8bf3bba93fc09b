import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memory } from 'millrace/memory'
import { memoryStore } from 'millrace/store'
import { type VirtualClock, virtualClock } from 'millrace/testing'
import { rememberedKeys } from '../../src/layers/remembered-keys.ts'
import type { Sent } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Store } from '../../src/store/store.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { connectStore } from '../stores/store-harness.ts'
import { bare } from './bare.ts'

const { signal } = new AbortController()
const HOLD_MS = 15_000

function keyed(id: string): Envelope {
  const remember = [
    { kind: 'idempotency', key: 'k', fingerprint: 'f', windowMs: 3_600_000 },
  ] as const
  return { id, body: Buffer.from('{}'), headers: {}, priority: 0, remember }
}

/** One broker and one store with a clock of their own, and a process that may have another one. */
async function world(): Promise<{
  readonly time: VirtualClock
  readonly broker: Transport
  readonly store: Store
  send(id: string, on?: Process): Promise<Sent | undefined>
}> {
  const time = virtualClock()
  const context = { signal, clock: time, random: Math.random, logger: silentLogger }
  const broker = bare(await memory().connect({ ...context, migrate: 'auto' }))
  await broker.topology.ensure([{ name: 'q', owner: 'test', maxDepth: undefined }], signal)
  const store = await connectStore(memoryStore(), time)
  return {
    ...{ time, broker, store },
    async send(id, on = {}) {
      const top = rememberedKeys(on.broker ?? broker, on.store ?? store, on.clock ?? time)
      return (await top.send('q', [keyed(id)], { signal }))[0]
    },
  }
}

interface Process {
  readonly clock?: VirtualClock
  readonly broker?: Transport
  readonly store?: Store
}

function codeOf(sent: Sent | undefined): string {
  if (sent === undefined) return 'nothing'
  if (sent.ok) return sent.duplicate ? `duplicate of ${sent.id}` : 'stored'
  return sent.fault.code
}

/** A broker whose answers come when they are let. */
function slow(broker: Transport): { readonly broker: Transport; answer(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  const send: Transport['send'] = async (...given) => {
    await promise
    return broker.send(...given)
  }
  return { broker: { ...broker, send }, answer: resolve }
}

test('Who sends for longer than a reservation lasts keeps its keys from others, and then they are duplicates.', async () => {
  const { time, broker, store, send } = await world()
  const late = slow(broker)
  const first = send('a', { broker: late.broker })
  await time.advance(10 * HOLD_MS)
  const second = send('b')
  await time.advance(11_000)
  const refusal = await second
  assert.equal(codeOf(refusal), 'throttled')
  assert.ok(refusal?.ok === false && refusal.fault.retryable, 'it may be sent again')
  assert.match(String(refusal.fault.cause), /just sending with idempotency key "k", or died/)
  late.answer()
  assert.equal(codeOf(await first), 'stored')
  assert.equal(codeOf(await send('c')), 'duplicate of a')
  assert.equal(time.nextDueAt(), undefined, 'no timer is left')
  assert.deepEqual(
    await store.keys.reserve('q', [{ id: 'd', keys: keyed('d').remember ?? [] }], 1),
    [{ as: 'duplicate', id: 'a' }],
  )
})

test('A store that is away for a while loses no reservation of a send that goes on.', async () => {
  const { time, broker, store, send } = await world()
  const late = slow(broker)
  let asked = 0
  const flaky: Store = {
    ...store,
    keys: {
      ...store.keys,
      reserve: async (...given) => {
        asked += 1
        if (asked % 2 === 0) throw new Error('the store is away')
        return store.keys.reserve(...given)
      },
    },
  }
  const first = send('a', { broker: late.broker, store: flaky })
  await time.advance(4 * HOLD_MS)
  assert.ok(asked > 6, `${asked}`)
  const second = send('b')
  await time.advance(11_000)
  assert.equal(codeOf(await second), 'throttled')
  late.answer()
  assert.equal(codeOf(await first), 'stored')
})

test('A sender that died within its send keeps its keys for 15 s and no longer.', async () => {
  const { time, broker, send } = await world()
  // Its clock stands still: nothing of it happens any more.
  void send('a', { broker: slow(broker).broker, clock: virtualClock() })
  await time.advance(HOLD_MS - 1)
  const waiting = send('b')
  await time.advance(0)
  await time.advance(300)
  assert.equal(codeOf(await waiting), 'stored')
  assert.equal(codeOf(await send('c')), 'duplicate of b')
})

test('Who was frozen between the reservation and the send sends nothing that another has sent meanwhile.', async () => {
  const { time, store, send } = await world()
  const own = virtualClock({ startMs: time.now() })
  const thaw = Promise.withResolvers<void>()
  const frozen: Store = {
    ...store,
    keys: {
      ...store.keys,
      reserve: async (...given) => {
        const answer = await store.keys.reserve(...given)
        await thaw.promise
        return answer
      },
    },
  }
  const first = send('a', { store: frozen, clock: own })
  await time.advance(HOLD_MS)
  assert.equal(codeOf(await send('b')), 'stored')
  await own.advance(HOLD_MS)
  thaw.resolve()
  assert.equal(codeOf(await first), 'throttled')
  assert.equal(codeOf(await send('a')), 'duplicate of b')
})

test('A send that certainly failed frees its keys at once, also behind a renewal that is on its way.', async () => {
  const { time, broker, store, send } = await world()
  const go = Promise.withResolvers<void>()
  const refusing: Transport = {
    ...broker,
    send: async () => {
      await go.promise
      return [{ ok: false, fault: { code: 'throttled', retryable: true, outcome: 'notApplied' } }]
    },
  }
  const renewal = Promise.withResolvers<void>()
  let asked = 0
  const delayed: Store = {
    ...store,
    keys: {
      ...store.keys,
      reserve: async (...given) => {
        asked += 1
        if (asked === 2) await renewal.promise
        return store.keys.reserve(...given)
      },
    },
  }
  const first = send('a', { broker: refusing, store: delayed })
  await time.advance(HOLD_MS / 3)
  assert.equal(asked, 2)
  go.resolve()
  await time.advance(1)
  renewal.resolve()
  assert.equal(codeOf(await first), 'throttled')
  assert.equal(codeOf(await send('b')), 'stored')
  assert.equal(time.nextDueAt(), undefined, 'no timer is left')
})

test('A send that waits for a key says all of its keys, and ends with its signal at once.', async () => {
  const { time, broker, store, send } = await world()
  const late = slow(broker)
  const first = send('a', { broker: late.broker })
  await time.advance(100)
  const two: Envelope = {
    ...keyed('b'),
    remember: [
      { kind: 'idempotency', key: 'k', fingerprint: 'f', windowMs: 3_600_000 },
      { kind: 'dedupe', key: 'd', fingerprint: undefined, windowMs: 3_600_000 },
    ],
  }
  const stop = new AbortController()
  const waiting = rememberedKeys(broker, store, time).send('q', [two], { signal: stop.signal })
  await time.advance(1_000)
  stop.abort()
  const [refusal] = await waiting
  assert.equal(codeOf(refusal), 'throttled')
  assert.match(
    String(refusal?.ok === false && refusal.fault.cause),
    /idempotency key "k" or dedupe key "d"/,
  )
  late.answer()
  assert.equal(codeOf(await first), 'stored')
})
