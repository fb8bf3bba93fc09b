import { DEFAULT_OWNER, type Harness } from 'millrace/conformance'
import { memory } from 'millrace/memory'
import { type VirtualClock, virtualClock } from 'millrace/testing'
import { silentLogger } from '../../src/model/logger.ts'

/** The memory transport on a clock that stands still, as a subject of the kit. */
export function memoryHarness(): Harness & { readonly time: VirtualClock } {
  const time = virtualClock()
  const connector = memory()
  const signal = new AbortController().signal
  const connect: Harness['connect'] = () =>
    connector.connect({
      signal,
      clock: time,
      random: () => 0.5,
      logger: silentLogger,
      migrate: 'auto',
    })
  let queues = 0
  return {
    name: 'memory',
    time,
    slow: 1,
    leaseMs: 500,
    connect,
    async freshQueue({ maxDepth, owner = DEFAULT_OWNER, onDead = 'continue', ageingMs } = {}) {
      queues += 1
      const name = `queue-${queues}`
      const transport = await connect()
      await transport.topology.ensure(
        [{ name, owner, maxDepth, onDead, ...(ageingMs === undefined ? {} : { ageingMs }) }],
        signal,
      )
      return name
    },
    async transaction() {
      const tx = connector.begin()
      return { tx, commit: async () => tx.commit(), rollback: async () => tx.rollback() }
    },
    foreignTransactions: () => [memory().begin()],
    async dispose() {},
  }
}
