import { after, test } from 'node:test'
import { type StoreHarness, storeConformance } from 'millrace/conformance'
import { kafka } from 'millrace/kafka'
import { memoryStore } from 'millrace/store'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Store } from '../../src/store/store.ts'
import { backendUrl } from '../backends.ts'
import { connectStore } from './store-harness.ts'

/** A store whose shelf is that of Kafka, so that the kit asks of it all that it asks of a shelf. */
const brokers = backendUrl('kafka')
if (brokers !== undefined) {
  const connector = memoryStore()
  const clock = systemClock()
  const connect = async (): Promise<Store> => {
    const { signal } = new AbortController()
    const context = { signal, clock, random: Math.random, logger: silentLogger } as const
    const store = await connectStore(connector, clock)
    const prefix = `letters-${process.pid}-`
    const transport = await kafka({ brokers: brokers.split(','), prefix }).connect({
      ...{ ...context, migrate: 'auto' },
    })
    const { letters } = transport
    if (letters === undefined) throw new Error('kafka has no place for dead letters')
    return {
      ...store,
      shelf: letters,
      diagnose: (error) => transport.diagnose(error),
      close: async () => {
        await transport.close()
        await store.close()
      },
    }
  }
  const harness: StoreHarness = {
    name: 'kafka dead letters',
    slow: 3,
    leaseMs: 500,
    connect,
    dispose: async () => {},
  }
  after(() => harness.dispose())
  // The rest of the store is that of memory, which has its own run.
  const ofShelf = (name: string, run: () => Promise<void>): void => {
    if (/store: (?:shelf|close)/.test(name)) test(name, run)
  }
  await storeConformance({ test: ofShelf, harness, depth: 'quick' })
}
