import assert from 'node:assert/strict'
import type { VirtualClock } from 'millrace/testing'
import { copies } from '../../src/layers/copies.ts'
import { crashMarks } from '../../src/layers/crash-marks.ts'
import type { Delivery, Settlement } from '../../src/model/delivery.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { refused } from '../../src/transport/outcomes.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { memoryHarness } from '../transports/memory-harness.ts'
import { bare } from './bare.ts'
import { type CountingStore, countingStore } from './counting-store.ts'
import { mortal, mortalStore } from './mortal.ts'

const { signal } = new AbortController()
export const LEASE_MS = 1_000

/** One process: its connections, and how it ends. */
export interface Holder {
  readonly transport: Transport
  /** Its broker takes no settlement. */
  isDeaf: boolean
  /** It answers that it is away. */
  isAway: boolean
  /** Its broker takes no message. */
  takesNothing: boolean
  readonly counting: CountingStore
  die(): Promise<void>
}

export interface Stage {
  readonly time: VirtualClock
  holder(): Promise<Holder>
  send(from: Holder, ...ids: readonly string[]): Promise<void>
}

/**
 * Holders on one bare broker with leases and one store.
 * @param given how a delivery of the broker looks
 */
export async function stage(given = (delivery: Delivery): Delivery => delivery): Promise<Stage> {
  const harness = memoryHarness()
  const { time } = harness
  const name = await harness.freshQueue()
  const stores = memoryStore()
  const context = { signal, clock: time, random: Math.random, logger: silentLogger } as const
  return {
    time,
    holder: async () => {
      const memory = await harness.connect()
      const broker = mortal(bare(memory, { delay: memory.traits.delay }))
      const { thing, die } = mortalStore(await stores.connect({ ...context, migrate: 'auto' }))
      const counting = countingStore(thing)
      const options = { store: counting.store, clock: time, random: Math.random, copied: true }
      const settleUnless = (settle: Subscription['settle']): Subscription['settle'] => {
        return async (batch) => {
          if (holder.isDeaf) throw new Error('the broker is away')
          if (holder.isAway) return batch.map(() => refused('unavailable'))
          return settle(batch)
        }
      }
      const deaf: Transport = {
        ...broker.thing,
        subscribe: async (queue, subscribeOptions) => {
          const from = await broker.thing.subscribe(queue, subscribeOptions)
          const receive: Subscription['receive'] = async (asked) =>
            (await from.receive(asked)).map(given)
          return { ...from, receive, settle: settleUnless(from.settle) }
        },
        send: async (queue, batch, options) =>
          holder.takesNothing
            ? batch.map(() => refused('full', { retryable: true }))
            : broker.thing.send(queue, batch, options),
      }
      const top = crashMarks(copies(deaf), options)
      const transport: Transport = {
        ...top,
        subscribe: (_, given) => top.subscribe(name, given),
        send: (_, batch, given) => top.send(name, batch, given),
      }
      const holder: Holder = {
        ...{ transport, counting, isDeaf: false, isAway: false, takesNothing: false },
        die: async () => {
          broker.die()
          die()
          // What it had in hand is ready again at once; at the end of its lease the memory would give it out one by one.
          await memory.close()
        },
      }
      return holder
    },
    send: async ({ transport }, ...ids) => {
      const batch = ids.map((id) => ({ id, headers: {}, priority: 0, body: new Uint8Array([1]) }))
      for (const outcome of await transport.send('', batch, { signal })) assert.ok(outcome.ok)
    },
  }
}

export function subscribe(
  { transport }: Holder,
  leaseMs: number = LEASE_MS,
): Promise<Subscription> {
  return transport.subscribe('', { group: 'g', leaseMs, maxInFlight: 100 })
}
export function receive(from: Subscription, max = 100): Promise<readonly Delivery[]> {
  return from.receive({ max, waitMs: 0, signal })
}
export const idsOf = (batch: readonly Delivery[]): readonly string[] =>
  batch.map(({ envelope }) => envelope.id).toSorted()
export const acked = (delivery: Delivery): Settlement => ({ as: 'acked', delivery })
export const bareRelease = (delivery: Delivery): Settlement => {
  return { as: 'released', delivery, delayMs: 0, counted: false }
}

/** A process takes all there is and is killed. */
export async function crash({ holder }: Stage, count: number): Promise<void> {
  const doomed = await holder()
  const batch = await receive(await subscribe(doomed))
  assert.equal(batch.length, count)
  await doomed.die()
}
