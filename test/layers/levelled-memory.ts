import { DEFAULT_OWNER, type Harness } from 'millrace/conformance'
import { priorities } from '../../src/layers/priorities.ts'
import type { QueueSpec, Transport } from '../../src/transport/transport.ts'
import { memoryHarness } from '../transports/memory-harness.ts'

/**
 * Levels on a backend that keeps attempts and dead letters by itself, as NATS does: the memory transport without what only one queue
 * of it can do.
 */
export function levelledMemoryHarness(levels: number): Harness {
  const memory = memoryHarness()
  const signal = new AbortController().signal
  const open = new Set<Transport>()
  const known: QueueSpec[] = []
  return {
    name: 'memory + priorities',
    ...{ time: memory.time, leaseMs: memory.leaseMs, slow: memory.slow, dispose: memory.dispose },
    async connect() {
      const { transaction: _, shed: __, haltedKeys: ___, ...inner } = await memory.connect()
      const plain = { ...inner.traits, order: 'none', priorities: 1 } as const
      const transport = priorities(
        { ...inner, databaseId: undefined, traits: plain },
        { most: levels, clock: memory.time },
      )
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
    async freshQueue({ owner = DEFAULT_OWNER, ageingMs } = {}) {
      const ageing = ageingMs === undefined ? {} : { ageingMs }
      const name = `queue ${known.length}`
      const queue = { name, owner, maxDepth: undefined, priorities: levels, ...ageing }
      known.push(queue)
      const first = await memory.connect()
      await priorities(first, { most: levels, clock: memory.time }).topology.ensure([queue], signal)
      await Promise.all([...open].map(({ topology }) => topology.ensure([queue], signal)))
      return name
    },
  }
}
