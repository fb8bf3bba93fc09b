import { DEFAULT_OWNER, type Harness } from 'millrace/conformance'
import type { VirtualClock } from 'millrace/testing'
import type { Traits } from '../../src/transport/traits.ts'
import type { QueueSpec, Transport } from '../../src/transport/transport.ts'
import { memoryHarness } from '../transports/memory-harness.ts'
import { bare } from './bare.ts'
import { mortal } from './mortal.ts'

export interface BareHarnessOptions {
  readonly name: string
  /** What the broker below can do beyond a bare one. */
  readonly more?: (memory: Traits) => Partial<Traits>
  /** How many levels each queue names. */
  readonly levels?: number
  /** What stands on it. */
  readonly on: (broker: Transport, time: VirtualClock) => Promise<MortalTop> | MortalTop
}

/** What stands on a broker, and how the rest of its process dies: the connection to the store. Without, it falls silent, no more. */
export type MortalTop = Transport & { readonly die?: () => void }

/** Layers on a bare broker as a subject of the kit. Every connection knows every queue, as in an app. */
export function bareHarness({ name, more, levels, on }: BareHarnessOptions): Harness {
  const memory = memoryHarness()
  const { time, leaseMs, slow, dispose } = memory
  const signal = new AbortController().signal
  const open = new Set<Transport>()
  const known: QueueSpec[] = []
  const named = levels === undefined ? {} : { priorities: levels }
  const deaths = new WeakMap<Transport, () => Promise<void>>()
  return {
    name,
    time,
    leaseMs,
    slow,
    dispose,
    async connect() {
      const inner = await memory.connect()
      const broker = mortal(bare(inner, more?.(inner.traits)))
      const transport = await on(broker.thing, time)
      await transport.topology.ensure(known, signal)
      open.add(transport)
      const opened = {
        ...transport,
        close: () => {
          open.delete(transport)
          return transport.close()
        },
      }
      const { die } = transport
      if (die !== undefined) {
        deaths.set(opened, async () => {
          broker.die()
          die()
          // What it had in hand is ready again, all of it at once; at the end of its lease the memory would give it out one by one.
          await inner.close()
        })
      }
      return opened
    },
    vanish: async (transport) => deaths.get(transport)?.(),
    async freshQueue({ owner = DEFAULT_OWNER, ageingMs } = {}) {
      const ageing = ageingMs === undefined ? {} : { ageingMs }
      const name = await memory.freshQueue({ owner })
      const queue = { name, owner, maxDepth: undefined, ...ageing, ...named }
      known.push(queue)
      await Promise.all([...open].map((transport) => transport.topology.ensure([queue], signal)))
      return queue.name
    },
  }
}
