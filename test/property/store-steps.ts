import fc from 'fast-check'
import type { DueMessage, Store, TakenMessage } from 'millrace/store'
import type { Envelope, RememberedKey } from '../../src/model/envelope.ts'
import { freshHistory } from '../../src/model/history.ts'

/** What one store has handed out and takes back; its tokens mean nothing to another store. */
export interface Hands {
  readonly store: Store
  taken: readonly TakenMessage[]
}

export interface Step {
  readonly name: string
  /** What the step saw, without what differs from store to store. */
  readonly run: (hands: Hands) => Promise<unknown>
  /** Time that goes by afterwards. */
  readonly passMs: number
}

const QUEUE = 'q'
const NOTE = { actor: 'a', reason: 'r' }

function envelope(id: string, n: number): Envelope {
  return { id, body: new Uint8Array([n]), headers: { n: `${n}` }, priority: 0 }
}

function plain({ envelope, dueAt }: DueMessage): unknown {
  return { id: envelope.id, n: envelope.headers.n, dueAt }
}

const id = fc.constantFrom('a', 'b', 'c')
const ms = fc.constantFrom(0, 1, 10, 50, 1_000)
const n = fc.nat({ max: 9 })
const key: fc.Arbitrary<RememberedKey> = fc.record({
  kind: fc.constantFrom('idempotency', 'dedupe'),
  key: fc.constantFrom('k', 'l'),
  fingerprint: fc.constantFrom('x', 'y', undefined),
  windowMs: fc.constantFrom(1, 30, 1_000),
})
const keyed = fc.record({
  id,
  keys: fc.uniqueArray(key, { maxLength: 2, selector: ({ kind }) => kind }),
})
const batch = fc.array(keyed, { minLength: 1, maxLength: 3 })

type Act = Pick<Step, 'name' | 'run'>

const keySteps: readonly fc.Arbitrary<Act>[] = [
  fc.tuple(batch, ms).map(([messages, holdMs]) => ({
    name: `reserve ${JSON.stringify(messages)} ${holdMs}`,
    run: ({ store }) => store.keys.reserve(QUEUE, messages, holdMs),
  })),
  batch.map((messages) => ({
    name: `confirm ${JSON.stringify(messages)}`,
    run: ({ store }) => store.keys.confirm(QUEUE, messages),
  })),
  batch.map((messages) => ({
    name: `free ${JSON.stringify(messages)}`,
    run: ({ store }) => store.keys.free(QUEUE, messages),
  })),
]

const delayedSteps: readonly fc.Arbitrary<Act>[] = [
  fc.array(fc.tuple(id, n, ms), { minLength: 1, maxLength: 3 }).map((puts) => ({
    name: `put ${JSON.stringify(puts)}`,
    run: ({ store }) =>
      store.delayed.put(
        QUEUE,
        puts.map(([one, value, delayMs]) => ({ envelope: envelope(one, value), delayMs })),
      ),
  })),
  fc.tuple(fc.integer({ min: 1, max: 3 }), ms).map(([max, leaseMs]) => ({
    name: `take ${max} for ${leaseMs}`,
    async run(hands) {
      const taken = await hands.store.delayed.take(QUEUE, { max, leaseMs })
      hands.taken = [...hands.taken, ...taken]
      return taken.map(plain)
    },
  })),
  fc.nat({ max: 5 }).map((at) => ({
    name: `sent ${at}`,
    async run(hands) {
      await hands.store.delayed.sent(QUEUE, hands.taken.slice(at, at + 2))
      return await hands.store.delayed.count(QUEUE)
    },
  })),
  id.map((one) => ({
    name: `remove ${one}`,
    run: ({ store }) => store.delayed.remove(QUEUE, [one, 'z']),
  })),
  id.map((one) => ({
    name: `get ${one}`,
    async run({ store }) {
      const found = await store.delayed.get(QUEUE, one)
      return [found && plain(found), await store.delayed.nextDueMs(QUEUE)]
    },
  })),
]

const shelfSteps: readonly fc.Arbitrary<Act>[] = [
  fc.array(fc.tuple(id, n), { minLength: 1, maxLength: 3 }).map((puts) => ({
    name: `shelf ${JSON.stringify(puts)}`,
    run: ({ store }) =>
      store.shelf.put(
        puts.map(([one, value]) => ({
          envelope: envelope(one, value),
          queue: QUEUE,
          owner: 'o',
          errorClass: value % 2 === 0 ? 'permanent' : 'crashed',
          reason: `${value}`,
          history: freshHistory,
          sentAt: 1,
        })),
      ),
  })),
  fc.integer({ min: 1, max: 3 }).map((limit) => ({
    name: `list ${limit}`,
    async run({ store }) {
      const { items, cursor } = await store.shelf.list(QUEUE, { limit })
      return [items.map(({ reason, deadAt }) => ({ reason, deadAt })), cursor]
    },
  })),
  fc.tuple(id, fc.boolean()).map(([one, late]) => ({
    name: `redriven ${one}${late ? ' late' : ''}`,
    async run({ store }) {
      const deadAt = ((await store.shelf.get(QUEUE, one))?.deadAt ?? 0) - (late ? 1 : 0)
      return await store.shelf.redriven(QUEUE, [{ id: one, deadAt }], NOTE)
    },
  })),
  id.map((one) => ({
    name: `discard ${one}`,
    run: async ({ store }) => [
      await store.shelf.discard(QUEUE, [one], NOTE),
      await store.shelf.audit(QUEUE, 5),
      await store.shelf.count(QUEUE, { errorClass: 'crashed' }),
    ],
  })),
]

const rowSteps: readonly fc.Arbitrary<Act>[] = [
  fc.tuple(id, n, fc.constantFrom('r', undefined), ms).map(([one, counted, runner, keepMs]) => ({
    name: `write ${one} ${counted} ${runner} ${keepMs}`,
    async run({ store }) {
      const entry = { id: one, history: { ...freshHistory, counted }, runner }
      await store.journal.write(QUEUE, [entry], keepMs)
      return await store.journal.read(QUEUE, ['a', 'b', 'c'])
    },
  })),
  id.map((one) => ({
    name: `forget ${one}`,
    async run({ store }) {
      const before = await store.journal.read(QUEUE, ['a', 'b', 'c'])
      await store.journal.forget(QUEUE, [one])
      return before
    },
  })),
  fc
    .tuple(id, fc.constantFrom('h', 'i'), ms, fc.nat({ max: 2 }))
    .map(([name, holder, ms, then]) => ({
      name: `lease ${name} ${holder} ${ms} ${then}`,
      async run({ store }) {
        const lease = await store.leases.acquire(name, holder, ms)
        if (lease === undefined || then === 0) return lease
        if (then === 1) return [lease, await store.leases.renew(name, lease, ms)]
        await store.leases.release(name, lease)
        return lease
      },
    })),
]

const SLOT_POOL = 'p'
const slot = fc.record({ holder: id, key: fc.constantFrom('k', 'l', undefined) })
const slotSteps: readonly fc.Arbitrary<Act>[] = [
  fc
    .tuple(
      fc.array(slot, { minLength: 1, maxLength: 3 }),
      fc.record({
        max: fc.constantFrom(1, 2, undefined),
        maxPerKey: fc.constantFrom(1, 2, undefined),
      }),
      ms,
      fc.nat({ max: 2 }),
    )
    .map(([batch, limits, leaseMs, then]) => ({
      name: `slots ${JSON.stringify([batch, limits])} ${leaseMs} ${then}`,
      async run({ store: { slots } }) {
        const answers = await slots.acquire(SLOT_POOL, limits, batch, leaseMs)
        const held = answers.flatMap((answer, at) => {
          const { holder } = batch[at] ?? {}
          return answer.as === 'held' && holder ? [{ holder, fence: answer.fence }] : []
        })
        const renewed = then === 1 ? await slots.renew(SLOT_POOL, held, leaseMs) : []
        if (then === 2) await slots.release(SLOT_POOL, held)
        return [answers, renewed, await slots.count(SLOT_POOL, 2)]
      },
    })),
]

const numberSteps: readonly fc.Arbitrary<Act>[] = [
  fc
    .tuple(id, fc.constantFrom(2, 5), fc.constantFrom(1, 20, 0.5), n)
    .map(([name, capacity, refillPerSecond, tokens]) => ({
      name: `bucket ${name} ${capacity} ${refillPerSecond} ${tokens}`,
      run: ({ store }) => store.buckets.take(name, { capacity, refillPerSecond }, tokens / 2),
    })),
  fc.tuple(id, fc.integer(), ms).map(([name, delta, keepMs]) => ({
    name: `count ${name} ${delta} ${keepMs}`,
    run: async ({ store }) => [
      await store.counters.read(name),
      await store.counters.add(name, delta, keepMs),
    ],
  })),
  fc.tuple(id, fc.boolean(), n).map(([name, current, value]) => ({
    name: `swap ${name} ${current} ${value}`,
    async run({ store }) {
      const before = await store.states.read(name)
      const version = current ? before?.version : 1n
      return [before, await store.states.swap(name, version, `${value}`)]
    },
  })),
  fc.integer({ min: 1, max: 4 }).map((max) => ({
    name: `prune ${max}`,
    async run({ store }) {
      await store.prune(max)
    },
  })),
]

/** Any order of acts, with time between them. */
export const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc
    .tuple(
      fc.oneof(
        ...keySteps,
        ...delayedSteps,
        ...shelfSteps,
        ...rowSteps,
        ...slotSteps,
        ...numberSteps,
      ),
      fc.constantFrom(0, 0, 0, 1, 7, 30, 400),
    )
    .map(([act, passMs]) => ({ ...act, passMs })),
  { minLength: 1, maxLength: 60, size: 'max' },
)
