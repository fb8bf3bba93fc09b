import { after, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { layered } from '../../src/layers/layered.ts'
import { priorities } from '../../src/layers/priorities.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { connectStore } from '../stores/store-harness.ts'
import { bareHarness } from './bare-harness.ts'
import { levelledMemoryHarness } from './levelled-memory.ts'
import { mortalStore } from './mortal.ts'

/** Queues of a broker that knows no priorities. */
const more = () => ({ priorities: 1 })

const alone = bareHarness({
  ...{ name: 'bare + priorities', more, levels: 10 },
  on: (broker, clock) => priorities(broker, { most: 10, clock }),
})
after(() => alone.dispose())
await conformance({ test, harness: alone })

const connector = memoryStore()
const below = bareHarness({
  ...{ name: 'bare + priorities + all layers on a memory store', more, levels: 6 },
  on: async (broker, clock) => {
    const { thing: store, die } = mortalStore(await connectStore(connector, clock))
    const options = { clock, logger: silentLogger, random: Math.random, levels: 6 }
    return { ...layered(broker, { ...options, store }), die }
  },
})
after(() => below.dispose())
await conformance({ test, harness: below })

const native = levelledMemoryHarness(10)
after(() => native.dispose())
await conformance({ test, harness: native })
