import { after, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { layered } from '../../src/layers/layered.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { bareHarness } from './bare-harness.ts'
import { mortalStore } from './mortal.ts'

const connector = memoryStore()
const harness = bareHarness({
  name: 'bare + all layers on a memory store',
  on: async (broker, clock) => {
    const store = await connector.connect({
      signal: new AbortController().signal,
      clock,
      random: () => 0.5,
      logger: silentLogger,
      migrate: 'auto',
    })
    const { thing, die } = mortalStore(store)
    const options = { clock, logger: silentLogger, random: Math.random }
    return { ...layered(broker, { ...options, store: thing }), die }
  },
})
after(() => harness.dispose())
await conformance({ test, harness })
