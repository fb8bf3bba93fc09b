import type { Delivery, Sent, Settled, Settlement } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { freshHistory } from '../../src/model/history.ts'
import { refused } from '../../src/transport/outcomes.ts'
import { refusalOf } from '../../src/transport/refusal.ts'
import { isBare } from '../../src/transport/settling.ts'
import type { Traits } from '../../src/transport/traits.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'

/** Under which the memory below knows a message: a broker takes the same id twice. */
const ID_HEADER = 'bare-id'

/** What a plain broker can do: carry messages, one at a time, and take them back at once. */
const bareTraits = {
  release: 'immediate',
  keepsHistory: false,
  countsCrashes: false,
  order: 'none',
  delay: 'none',
  remembersIds: false,
  dedupe: 'none',
  deadLetters: 'none',
  capacity: 'sampled',
  atomicBatch: false,
} as const satisfies Partial<Traits>

/** A broker that can do little, made of the memory transport. @param more what this one can do all the same */
export function bare(inner: Transport, more: Partial<Traits> = {}): Transport {
  const { fairness: _none, ...others } = inner.traits
  const traits: Traits = { ...others, ...bareTraits, ...more }
  let sent = 0
  const under = (envelope: Envelope): Envelope => {
    sent += 1
    const headers = { ...envelope.headers, [ID_HEADER]: envelope.id }
    return { ...envelope, id: `bare-${sent}-${Math.random().toString(36).slice(2)}`, headers }
  }
  const { browse } = inner
  return {
    name: 'bare',
    databaseId: undefined,
    traits,
    topology: {
      ensure: (queues, signal) =>
        inner.topology.ensure(
          queues.map((queue) => ({ ...queue, maxDepth: undefined })),
          signal,
        ),
    },
    diagnose: inner.diagnose,
    close: inner.close,
    send: async (queue, batch, { signal, atomic }) => {
      const refusals = batch.map((one) => refusal(one, traits, atomic ?? false))
      const open = batch.filter((_, i) => refusals[i] === undefined)
      const outcomes = (await inner.send(queue, open.map(under), { signal })).values()
      return batch.map((one, i): Sent => {
        const refusal = refusals[i]
        if (refusal !== undefined) return refusal
        const outcome = outcomes.next().value ?? refused('unknown')
        return outcome.ok ? { ...outcome, id: one.id } : outcome
      })
    },
    subscribe: async (queue, options) =>
      bareSubscription(await inner.subscribe(queue, options), traits.release === 'delayed'),
    ...(browse && {
      browse: {
        gauge: async (queue) => ({
          ...(await browse.gauge(queue)),
          dead: undefined,
          scheduled: undefined,
        }),
      },
    }),
  }
}

function refusal(envelope: Envelope, traits: Traits, atomic: boolean): Sent | undefined {
  const { remember = [] } = envelope
  return atomic || remember.length > 0 ? refused('invalid') : refusalOf(envelope, traits)
}

function bareSubscription(inner: Subscription, delays: boolean): Subscription {
  const isAble = (one: Settlement): boolean =>
    one.as === 'acked' || (one.as === 'released' && isBare(one) && (delays || one.delayMs === 0))
  return {
    ...inner,
    receive: async (options) => (await inner.receive(options)).map(bareDelivery),
    settle: async (batch) => {
      const able = batch.filter(isAble)
      const ended = (await inner.settle(able)).values()
      return batch.map((one): Settled => (isAble(one) ? (ended.next().value ?? invalid) : invalid))
    },
  }
}

const invalid: Settled = {
  ok: false,
  fault: { code: 'invalid', retryable: false, outcome: 'notApplied' },
}

function bareDelivery(delivery: Delivery): Delivery {
  const { [ID_HEADER]: id = '', ...headers } = delivery.envelope.headers
  const envelope = { ...delivery.envelope, id, headers }
  return { ...delivery, envelope, history: freshHistory, alone: false }
}
