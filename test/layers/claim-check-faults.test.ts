import { test } from 'node:test'
import { type BlobStore, memoryBlobs } from 'millrace/blobs'
import type { Harness } from 'millrace/conformance'
import { memoryStore } from 'millrace/store'
import { claimCheck } from '../../src/layers/claim-check.ts'
import { faulty } from '../../src/layers/faulty.ts'
import { layered } from '../../src/layers/layered.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { seededRandom } from '../../src/testing/seeded-random.ts'
import { byDepth } from '../depth.ts'
import { connectStore } from '../stores/store-harness.ts'
import { bareHarness } from './bare-harness.ts'
import { fetched } from './fetched.ts'
import { nothingIsLost } from './nothing-lost.ts'

const MESSAGES = byDepth({ full: 150, long: 2_000 })
const SEEDS = byDepth({ quick: 2, full: 5, long: 40 })
const RATE = 0.03

/** Fails before anything was done, or after all of it was. */
function faultyBlobs(blobs: BlobStore, random: () => number): BlobStore {
  const suffer = async <T>(act: () => Promise<T>): Promise<T> => {
    const draw = random()
    if (draw < RATE) throw new Error('injected fault of the blobs')
    const answer = await act()
    if (draw < 2 * RATE) throw new Error('injected loss of the answer')
    return answer
  }
  return {
    ...blobs,
    put: (...given) => suffer(() => blobs.put(...given)),
    get: (...given) => suffer(() => blobs.get(...given)),
    remove: (...given) => suffer(() => blobs.remove(...given)),
  }
}

function troubledHarness(seed: number): Harness {
  const random = seededRandom(`claim check ${seed}`)
  const connector = memoryStore()
  const blobs = faultyBlobs(memoryBlobs(), random)
  return bareHarness({
    name: `claim check, seed ${seed}`,
    on: async (broker, clock) => {
      const store = await connectStore(connector, clock)
      const trouble = faulty({
        random,
        clock,
        rates: { rejected: RATE, refused: RATE, unanswered: RATE, slow: RATE / 3 },
        slowMs: 20,
      })
      const below = trouble(
        layered(trouble(broker), { store, clock, random, logger: silentLogger }),
      )
      return fetched(trouble(claimCheck(below, { blobs, aboveBytes: 4, clock, random })))
    },
  })
}

for (let seed = 1; seed <= SEEDS; seed++) {
  test(`whatever fails below and beside the claim check, nothing is lost (seed ${seed})`, async () => {
    await nothingIsLost(troubledHarness(seed), seed, MESSAGES)
  })
}
