import { conformance } from 'millrace/conformance'
import { settleEach } from '../../src/layers/settle-each.ts'
import { backendUrl } from '../backends.ts'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { type Register, runKits } from '../kits.ts'
import { kafkaHarness } from './kafka-harness.ts'
import { withStore } from './kafka-layered.ts'

const brokers = backendUrl('kafka')

/** Without a layer that puts them there, topics for dead letters are made for nothing. */
const bare = { deadLetters: 'store' } as const

const SETTLE_EACH = 'kafka + settle each'

if (brokers !== undefined) {
  const subjects = [
    kafkaHarness({ brokers }),
    kafkaHarness({ brokers, name: SETTLE_EACH, settings: bare, on: settleEach }),
    ...(['hold', 'park'] as const).map((retry) =>
      kafkaHarness({ brokers, name: `kafka + ${retry}`, settings: { retry }, on: withStore() }),
    ),
  ]
  // A connection asks for the queues that were made last, so the tests of one kit cannot wait together.
  const kits = subjects.map((harness) => ({
    name: harness.name,
    atOnce: 1,
    // The two above it have this layer, too.
    leftToFull: harness.name === SETTLE_EACH,
    register: (test: Register) =>
      conformance({ test, harness, depth: kitDepth, onResult: recordResult }),
    dispose: () => harness.dispose(),
  }))
  await runKits(kits, kits.length)
}
