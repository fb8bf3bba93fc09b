import { DEFAULT_OWNER, type Harness } from 'millrace/conformance'
import { type VirtualClock, virtualClock } from 'millrace/testing'
import type { QueueSpec, Transport } from '../../src/transport/transport.ts'
import type { MortalTop } from './bare-harness.ts'
import { memoryLog } from './memory-log.ts'

export interface LogHarnessOptions {
  readonly name: string
  /** Its queues have an order that their app asked for. */
  readonly ordered?: boolean
  /** What stands on the log. */
  readonly on: (log: Transport, time: VirtualClock) => Promise<MortalTop> | MortalTop
}

/** Layers on a log in memory with one lane, as a subject of the kit. Every connection knows every queue, as in an app. */
export function logHarness({ name, ordered = false, on }: LogHarnessOptions): Harness {
  const time = virtualClock()
  const log = memoryLog(time, 1)
  const signal = new AbortController().signal
  const open = new Set<MortalTop>()
  const known: QueueSpec[] = []
  return {
    name,
    time,
    slow: 1,
    leaseMs: 500,
    async connect() {
      const transport = await on(log.connect(), time)
      await transport.topology.ensure(known, signal)
      open.add(transport)
      return transport
    },
    async freshQueue({ owner = DEFAULT_OWNER } = {}) {
      const name = `queue-${known.length + 1}`
      const queue = { name, owner, maxDepth: undefined, ...(ordered && { ordered }) }
      known.push(queue)
      await log.connect().topology.ensure([queue], signal)
      await Promise.all([...open].map((transport) => transport.topology.ensure([queue], signal)))
      return queue.name
    },
    // Its lanes are somebody else's at once; nobody hears of it.
    vanish: async (transport) => {
      for (const one of open) if (one === transport) one.die?.()
      await transport.close()
    },
    async dispose() {},
  }
}
