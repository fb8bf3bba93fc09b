import { after, test } from 'node:test'
import { memoryBlobs } from 'millrace/blobs'
import { conformance } from 'millrace/conformance'
import { memoryStore } from 'millrace/store'
import { claimCheck } from '../../src/layers/claim-check.ts'
import { layered } from '../../src/layers/layered.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { recordResult } from '../conformance-results.ts'
import { connectStore } from '../stores/store-harness.ts'
import { memoryHarness } from '../transports/memory-harness.ts'
import { bareHarness } from './bare-harness.ts'
import { fetched } from './fetched.ts'

const MAX_BYTES = 2_000_000

const alone = memoryHarness()
const blobs = memoryBlobs({ maxBytes: MAX_BYTES })
const onMemory = {
  ...alone,
  name: 'memory + claim check',
  connect: async () =>
    fetched(
      claimCheck(await alone.connect(), {
        blobs,
        aboveBytes: 0,
        clock: alone.time,
        random: Math.random,
      }),
    ),
}
after(() => onMemory.dispose())
await conformance({ test, harness: onMemory, onResult: recordResult })

const connector = memoryStore()
const others = memoryBlobs({ maxBytes: MAX_BYTES })
const onLayers = bareHarness({
  name: 'bare + all layers + claim check',
  on: async (broker, clock) => {
    const random = Math.random
    const store = await connectStore(connector, clock)
    const below = layered(broker, { store, clock, random, logger: silentLogger })
    return fetched(claimCheck(below, { blobs: others, aboveBytes: 10, clock, random }))
  },
})
after(() => onLayers.dispose())
await conformance({ test, harness: onLayers })
