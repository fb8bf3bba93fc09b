import { after, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { memoryStore } from 'millrace/store'
import { layered } from '../../src/layers/layered.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { connectStore } from '../stores/store-harness.ts'
import { bareHarness } from './bare-harness.ts'
import { mortalStore } from './mortal.ts'

const connector = memoryStore()
const harness = bareHarness({
  name: 'bare with order + journals and dead letters on a memory store',
  more: () => ({ order: 'perKey', release: 'delayed' }),
  on: async (broker, clock) => {
    const { thing, die } = mortalStore(await connectStore(connector, clock))
    const options = { clock, logger: silentLogger, random: Math.random }
    return { ...layered(broker, { ...options, store: thing }), die }
  },
})
after(() => harness.dispose())
await conformance({ test, harness })
