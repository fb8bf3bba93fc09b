import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conformance } from 'millrace/conformance'
import type { Delivery } from '../../../src/model/delivery.ts'
import { settled } from '../../../src/model/delivery.ts'
import type { Envelope } from '../../../src/model/envelope.ts'
import type { Subscription, Transport } from '../../../src/transport/transport.ts'
import { memoryHarness } from '../../transports/memory-harness.ts'

/** A transport that breaks one promise, and the test of the kit that must notice. */
interface Mutant {
  readonly defect: string
  readonly noticedBy: string
  readonly mutate: (sound: Transport) => Partial<Transport>
}

const onSend =
  (change: (envelope: Envelope) => Envelope) =>
  (sound: Transport): Partial<Transport> => ({
    send: (queue, batch, options) => sound.send(queue, batch.map(change), options),
  })

const onSubscription =
  (change: (sound: Subscription) => Partial<Subscription>) =>
  (sound: Transport): Partial<Transport> => ({
    async subscribe(queue, options) {
      const subscription = await sound.subscribe(queue, options)
      return { ...subscription, ...change(subscription) }
    },
  })

const onDelivery = (change: (delivery: Delivery) => Partial<Delivery>) =>
  onSubscription((sound) => ({
    receive: async (options) =>
      (await sound.receive(options)).map((delivery) => ({ ...delivery, ...change(delivery) })),
  }))

function without(envelope: Envelope, member: 'remember' | 'delayMs' | 'idempotencyKey'): Envelope {
  const { [member]: _, ...rest } = envelope
  return rest
}

const mutants: readonly Mutant[] = [
  {
    defect: 'loses every tenth message after it said ok',
    noticedBy: 'Producers and consumers at once lose nothing and ack nothing twice.',
    mutate: (sound) => ({
      async send(queue, batch, options) {
        const kept = batch.filter((envelope) => envelope.id.charCodeAt(3) % 10 !== 0)
        await sound.send(queue, kept, options)
        return batch.map(({ id }) => ({ ok: true, id, duplicate: false }))
      },
    }),
  },
  {
    defect: 'does not grow again once it was made smaller',
    noticedBy:
      'A subscription that is made smaller and larger again keeps what it has in hand, and hands out all that waits.',
    mutate: onSubscription((sound) => {
      let most = Number.POSITIVE_INFINITY
      let inHand = 0
      return {
        resize: (next) => {
          most = Math.min(most, next)
        },
        async receive(options) {
          if (inHand >= most) return []
          const came = await sound.receive({
            ...options,
            max: Math.min(options.max, most - inHand),
          })
          inHand += came.length
          return came
        },
        async settle(batch) {
          inHand -= batch.length
          return await sound.settle(batch)
        },
      }
    }),
  },
  {
    defect: 'tells two workers that their ack counted',
    noticedBy:
      'Nothing is lost and nothing acked twice when consumers vanish with messages in hand.',
    mutate: onSubscription((sound) => ({
      async settle(batch) {
        await sound.settle(batch.filter((settlement) => settlement.as !== 'acked'))
        return batch.map(() => settled)
      },
    })),
  },
  {
    defect: 'confirms acks that it does not do',
    noticedBy: 'An acked message is gone for good, also after its lease would have ended.',
    mutate: onSubscription(() => ({ settle: async (batch) => batch.map(() => settled) })),
  },
  {
    defect: 'hides that a settlement came too late',
    noticedBy: 'Settling what another has taken answers lost and changes nothing.',
    mutate: onSubscription((sound) => ({
      async settle(batch) {
        await sound.settle(batch)
        return batch.map(() => settled)
      },
    })),
  },
  {
    defect: 'forgets the delay of a release',
    noticedBy: 'A message released with a delay comes back when it has passed and not before.',
    mutate: onSubscription((sound) => ({
      settle: (batch) =>
        sound.settle(batch.map((one) => (one.as === 'released' ? { ...one, delayMs: 0 } : one))),
    })),
  },
  {
    defect: 'counts every release',
    noticedBy: 'An uncounted release leaves the count of attempts as it was.',
    mutate: onSubscription((sound) => ({
      settle: (batch) =>
        sound.settle(batch.map((one) => (one.as === 'released' ? { ...one, counted: true } : one))),
    })),
  },
  {
    defect: 'does not renew',
    noticedBy: 'Renewal keeps exactly the renewed messages, and no other.',
    mutate: onSubscription(() => ({ renew: async (batch) => batch.map(() => settled) })),
  },
  {
    defect: 'gives more than was asked for',
    noticedBy: 'No receive answers more than max.',
    mutate: onSubscription((sound) => ({
      receive: (options) => sound.receive({ ...options, max: options.max + 1 }),
    })),
  },
  {
    defect: 'is never woken',
    noticedBy: 'A waiting receive is woken by a message that another connection sends.',
    mutate: onSubscription((sound) => ({
      async receive({ max, waitMs, signal }) {
        const first = await sound.receive({ max, waitMs: 0, signal })
        if (first.length > 0 || waitMs === 0) return first
        return sound.receive({ max: 1, waitMs, signal: AbortSignal.abort() })
      },
    })),
  },
  {
    defect: 'ignores priorities',
    noticedBy: 'Higher priorities come first, and equal ones in the order of sending.',
    mutate: onSend((envelope) => ({ ...envelope, priority: 0 })),
  },
  {
    defect: 'delivers at once what was to wait',
    noticedBy: 'A delayed message arrives when its delay has passed and not before.',
    mutate: onSend((envelope) => without(envelope, 'delayMs')),
  },
  {
    defect: 'drops headers',
    noticedBy:
      'A stored message arrives at another connection with its id, body, headers and keys.',
    mutate: onSend((envelope) => ({ ...envelope, headers: {} })),
  },
  {
    defect: 'remembers no keys',
    noticedBy: 'Of twenty concurrent senders of one key, on two connections, exactly one stores.',
    mutate: onSend((envelope) => without(envelope, 'remember')),
  },
  {
    defect: 'looks at keys only',
    noticedBy:
      'The same idempotency key with another payload is a conflict that names the first id.',
    mutate: onSend((envelope) => ({
      ...envelope,
      remember: (envelope.remember ?? []).map((key) => ({ ...key, fingerprint: 'f' })),
    })),
  },
  {
    defect: 'remembers keys for ever',
    noticedBy: 'When its window has ended a key is free again.',
    mutate: onSend((envelope) => ({
      ...envelope,
      remember: (envelope.remember ?? []).map((key) => ({ ...key, windowMs: 1e9 })),
    })),
  },
  {
    defect: 'stores half of an atomic batch',
    noticedBy: 'An atomic batch with a conflict stores nothing and remembers no key.',
    mutate: (sound) => ({
      send: (queue, batch, { signal }) => sound.send(queue, batch, { signal }),
    }),
  },
  {
    defect: 'does not say who is suspect',
    noticedBy:
      'A message whose holder vanished comes back with one counted attempt of class crashed.',
    mutate: onDelivery(() => ({ alone: false })),
  },
  {
    defect: 'hands out the same fence again',
    noticedBy: 'The fence grows with each handing out.',
    mutate: onDelivery(() => ({ fence: 1n })),
  },
  {
    defect: 'keeps what it holds when it is closed',
    noticedBy: 'A closing subscription releases what it holds, at once and uncounted.',
    mutate: onSubscription(() => ({ close: async () => {} })),
  },
  {
    defect: 'ends its shelf after one page',
    noticedBy:
      'A cursor walks over all dead letters without gap or double, also when they died at once.',
    mutate: ({ shelf }) =>
      shelf
        ? {
            shelf: {
              ...shelf,
              list: async (queue, options) => ({
                ...(await shelf.list(queue, options)),
                cursor: null,
              }),
            },
          }
        : {},
  },
  {
    defect: 'forgets who redrove',
    noticedBy: 'Who moved or removed what, and why, is on record, newest first.',
    mutate: ({ shelf }) => (shelf ? { shelf: { ...shelf, audit: async () => [] } } : {}),
  },
  {
    defect: 'does not pause',
    noticedBy: 'A paused queue hands out nothing to anybody, and keeps what is sent.',
    mutate: ({ browse }) => (browse ? { browse: { ...browse, setPaused: async () => {} } } : {}),
  },
  {
    defect: 'takes any object for its own transaction',
    noticedBy: 'A transaction of another client or database is not recognised.',
    mutate: ({ transaction }) =>
      transaction
        ? {
            transaction: (tx) =>
              transaction(tx) ?? { synchronous: true, send: () => [], ack: () => [] },
          }
        : {},
  },
  {
    defect: 'acks in a transaction without a look at the lease',
    noticedBy: 'An ack in a transaction after the lease has ended answers lost.',
    mutate: ({ transaction }) =>
      transaction
        ? {
            async transaction(tx) {
              const inside = await transaction(tx)
              return inside && { ...inside, ack: (_queue, batch) => batch.map(() => settled) }
            },
          }
        : {},
  },
  {
    defect: 'sends outside of the transaction that it was given',
    noticedBy: 'A message sent in a transaction that is rolled back was never there.',
    mutate: (sound) => ({
      async transaction(tx) {
        const inside = await sound.transaction?.(tx)
        const signal = new AbortController().signal
        return inside && { ...inside, send: (queue, batch) => sound.send(queue, batch, { signal }) }
      },
    }),
  },
  {
    defect: 'states a larger limit than it has',
    noticedBy: 'A body at the stated limit is stored and comes back whole.',
    mutate: ({ traits }) => ({
      traits: { ...traits, limits: { ...traits.limits, bodyBytes: traits.limits.bodyBytes + 1 } },
    }),
  },
  {
    defect: 'states a smaller limit than it has',
    noticedBy: 'A body one byte above the limit is refused as tooLarge, and nothing is stored.',
    mutate: ({ traits }) => ({
      traits: { ...traits, limits: { ...traits.limits, bodyBytes: traits.limits.bodyBytes - 1 } },
    }),
  },
  {
    defect: 'says that it has no delays, and delays',
    noticedBy: 'A transport without delays refuses a delayed message as invalid.',
    mutate: ({ traits }) => ({ traits: { ...traits, delay: 'none' } }),
  },
]

for (const { defect, noticedBy, mutate } of mutants) {
  test(`A transport that ${defect} does not pass.`, async () => {
    const harness = memoryHarness()
    const connect = async (): Promise<Transport> => {
      const sound = await harness.connect()
      return { ...sound, ...mutate(sound) }
    }
    const runs = new Map<string, () => Promise<void>>()
    await conformance({
      harness: { ...harness, connect },
      test: (title, run) => runs.set(title.slice(title.lastIndexOf(' · ') + 3), run),
    })
    const run = runs.get(noticedBy)
    assert.ok(run, `no such promise: ${noticedBy}`)
    await assert.rejects(run())
  })
}
