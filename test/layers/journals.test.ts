import { after, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { memoryStore } from 'millrace/store'
import { deadLetters } from '../../src/layers/dead-letters.ts'
import { journals } from '../../src/layers/journals.ts'
import { connectStore } from '../stores/store-harness.ts'
import { bareHarness } from './bare-harness.ts'

const connector = memoryStore()
const harness = bareHarness({
  name: 'bare with delayed release + journals and dead letters on a memory store',
  more: () => ({ release: 'delayed' }),
  on: async (broker, clock) => {
    const store = await connectStore(connector, clock)
    return deadLetters(journals(broker, store), { store, clock, random: Math.random })
  },
})
after(() => harness.dispose())
await conformance({ test, harness })
