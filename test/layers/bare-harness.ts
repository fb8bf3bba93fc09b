import { DEFAULT_OWNER, type Harness } from 'millrace/conformance'
import type { VirtualClock } from 'millrace/testing'
import type { Traits } from '../../src/transport/traits.ts'
import type { QueueSpec, Transport } from '../../src/transport/transport.ts'
import { memoryHarness } from '../transports/memory-harness.ts'
import { bare } from './bare.ts'

export interface BareHarnessOptions {
  readonly name: string
  /** What the broker below can do beyond a bare one. */
  readonly more?: (memory: Traits) => Partial<Traits>
  /** What stands on it. */
  readonly on: (broker: Transport, time: VirtualClock) => Promise<Transport> | Transport
}

/** Layers on a bare broker as a subject of the kit. Every connection knows every queue, as in an app. */
export function bareHarness({ name, more, on }: BareHarnessOptions): Harness {
  const memory = memoryHarness()
  const { time, leaseMs, slow, dispose } = memory
  const signal = new AbortController().signal
  const open = new Set<Transport>()
  const known: QueueSpec[] = []
  return {
    name,
    time,
    leaseMs,
    slow,
    dispose,
    async connect() {
      const inner = await memory.connect()
      const broker = bare(inner, more?.(inner.traits))
      const transport = await on(broker, time)
      await transport.topology.ensure(known, signal)
      open.add(transport)
      return {
        ...transport,
        close: () => {
          open.delete(transport)
          return transport.close()
        },
      }
    },
    async freshQueue({ owner = DEFAULT_OWNER } = {}) {
      const queue = { name: await memory.freshQueue({ owner }), owner, maxDepth: undefined }
      known.push(queue)
      await Promise.all([...open].map((transport) => transport.topology.ensure([queue], signal)))
      return queue.name
    },
  }
}
