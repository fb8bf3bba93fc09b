import type { Clock } from '../model/clock.ts'
import type { Envelope } from '../model/envelope.ts'
import type { Logger } from '../model/logger.ts'
import type { Store } from '../store/store.ts'
import { refused, stored } from '../transport/outcomes.ts'
import type { Transport } from '../transport/transport.ts'
import { chunks } from './chunks.ts'
import { type DelayRelay, startDelayRelay } from './delay-relay.ts'
import { soon } from './soon.ts'

export interface DelaysOptions {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
}

/** As long as the SQL transports take: ten years. */
const DELAY_MAX_MS = 315_360_000_000
/**
 * Lets messages wait in the store for longer than the broker can, and sends them when they are due. Every process that knows
 * the queue does; what one of them has taken, the others leave alone for a while.
 */
export function delays(inner: Transport, { store, clock, logger }: DelaysOptions): Transport {
  const closing = new AbortController()
  const relays = new Map<string, DelayRelay>()
  const nativeMs = inner.traits.delay === 'none' ? 0 : inner.traits.delay.maxMs
  const waitMs = ({ delayMs, readyAt }: Envelope): number =>
    delayMs ?? (readyAt === undefined ? 0 : readyAt - clock.now())

  const relayOf = (queue: string): DelayRelay => {
    const known = relays.get(queue)
    if (known !== undefined) return known
    const made = startDelayRelay({ inner, store, clock, logger, queue, closed: closing.signal })
    relays.set(queue, made)
    return made
  }

  const { browse } = inner
  return {
    ...inner,
    traits: { ...inner.traits, delay: { maxMs: DELAY_MAX_MS } },
    topology: {
      ...inner.topology,
      ensure: async (queues, signal) => {
        await inner.topology.ensure(queues, signal)
        for (const { name } of queues) relayOf(name)
      },
    },
    send: async (queue, batch, options) => {
      const isLate = batch.map((envelope) => waitMs(envelope) > nativeMs)
      const now = batch.filter((_, i) => !isLate[i]).map(dueAlready(waitMs))
      if (now.length === batch.length) return inner.send(queue, now, options)
      const sent = now.length === 0 ? [] : await inner.send(queue, now, options)
      const waiting = batch
        .filter((_, i) => isLate[i])
        .map((envelope) => ({ envelope: undelayed(envelope), delayMs: waitMs(envelope) }))
      for (const part of chunks(waiting, store.traits.limits.batch)) {
        await store.delayed.put(queue, part)
      }
      relayOf(queue).look(Math.min(...waiting.map(({ delayMs }) => delayMs)))
      const outcomes = sent.values()
      return batch.map(({ id }, i) =>
        isLate[i] ? stored(id) : (outcomes.next().value ?? refused('unknown')),
      )
    },
    ...(browse && {
      browse: {
        ...browse,
        gauge: async (queue) => {
          const [gauge, waiting] = await Promise.all([
            browse.gauge(queue),
            // Who asks how full a queue is must not wait for the store.
            soon(clock, store.delayed.count(queue)),
          ])
          const scheduled = waiting === undefined ? undefined : (gauge.scheduled ?? 0) + waiting
          return { ...gauge, scheduled }
        },
      },
    }),
    close: async () => {
      closing.abort()
      await Promise.all([...relays.values()].map((relay) => relay.ended))
      await inner.close()
    },
  }
}

function undelayed(envelope: Envelope): Envelope {
  const { delayMs: _, readyAt: __, ...rest } = envelope
  return rest
}

/** A moment that has passed is no delay, also for a broker that knows none. */
function dueAlready(waitMs: (envelope: Envelope) => number): (envelope: Envelope) => Envelope {
  return (envelope) => (waitMs(envelope) <= 0 ? undelayed(envelope) : envelope)
}
