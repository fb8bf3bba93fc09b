import type { Clock } from '../model/clock.ts'
import { closedError } from '../model/closed-error.ts'
import type { DeadLetter } from '../model/dead-letter.ts'
import type { Dead, Settled, Settlement } from '../model/delivery.ts'
import type { Store } from '../store/store.ts'
import type { StoredShelf } from '../store/stored-shelf.ts'
import { lost } from '../transport/outcomes.ts'
import { lastHistory } from '../transport/settling.ts'
import type { Subscription, Transport } from '../transport/transport.ts'
import { chunks } from './chunks.ts'
import { layeredShelf } from './layered-shelf.ts'
import { letterWithPast } from './past.ts'
import { soon } from './soon.ts'
import { stillOurs } from './still-ours.ts'

export interface DeadLettersOptions {
  /** Its leases keep two redrives apart. */
  readonly store: Store
  /** Where the letters are; the store's shelf by default. */
  readonly shelf?: StoredShelf
  /** Most letters in one call of the shelf; the store's limit by default. */
  readonly batch?: number
  readonly clock: Clock
  readonly random: () => number
}

/**
 * Keeps dead letters on a shelf, for brokers whose own cannot be listed without being consumed. A dying message is put on
 * the shelf and then acked; a redriven one is sent and then taken off the shelf. A crash between doubles and never loses.
 */
export function deadLetters(inner: Transport, options: DeadLettersOptions): Transport {
  const { store, clock } = options
  const { shelf = store.shelf, batch = store.traits.limits.batch } = options
  const owners = new Map<string, string>()
  const closing = new AbortController()
  const { browse } = inner
  return {
    ...inner,
    traits: { ...inner.traits, deadLetters: 'native' },
    shelf: layeredShelf(inner, options, closing.signal),
    close: () => {
      closing.abort(closedError('the transport'))
      return inner.close()
    },
    topology: {
      ...inner.topology,
      ensure: async (queues, signal) => {
        for (const { name, owner } of queues) owners.set(name, owner)
        await inner.topology.ensure(queues, signal)
      },
    },
    ...(browse && {
      browse: {
        ...browse,
        gauge: async (queue) => {
          const [gauge, dead] = await Promise.all([
            browse.gauge(queue),
            // Who asks how full a queue is must not wait for a shelf that is away or long.
            soon(clock, shelf.count(queue, {})),
          ])
          return { ...gauge, dead }
        },
      },
    }),
    async subscribe(queue, subscribeOptions) {
      const subscription = await inner.subscribe(queue, subscribeOptions)
      const letterOf = (dead: Dead): Letter => ({
        ...letterWithPast(dead.delivery, lastHistory(dead.delivery, dead)),
        queue,
        owner: owners.get(queue) ?? '',
        errorClass: dead.errorClass,
        reason: dead.reason,
      })
      const bury: Bury = async (dead) => {
        for (const part of chunks(dead.map(letterOf), batch)) {
          await shelf.put(part)
        }
      }
      return buryingSubscription(subscription, bury, subscribeOptions.leaseMs)
    },
  }
}

type Letter = Omit<DeadLetter, 'deadAt'>
type Bury = (dead: readonly Dead[]) => Promise<void>

function buryingSubscription(inner: Subscription, bury: Bury, leaseMs: number): Subscription {
  return {
    ...inner,
    settle: async (batch) => {
      const dead = batch.filter(isDead)
      if (dead.length === 0) return inner.settle(batch)
      // What is no longer ours will die again with whoever has it now.
      const deliveries = dead.map(({ delivery }) => delivery)
      const ours = await stillOurs(inner, deliveries, leaseMs)
      const held = dead.filter(({ delivery }) => ours.has(delivery))
      if (held.length > 0) await bury(held)
      const buried = new Set<Settlement>(held)
      const rest = batch.filter((one) => !isDead(one) || buried.has(one))
      const ended = await inner.settle(rest.map(ackedIfDead))
      const outcomes = new Map<Settlement, Settled | undefined>(
        rest.map((one, i) => [one, ended[i]]),
      )
      return batch.map((one) => outcomes.get(one) ?? lost)
    },
  }
}

function isDead(settlement: Settlement): settlement is Dead {
  return settlement.as === 'dead'
}

function ackedIfDead(settlement: Settlement): Settlement {
  return isDead(settlement) ? { as: 'acked', delivery: settlement.delivery } : settlement
}
