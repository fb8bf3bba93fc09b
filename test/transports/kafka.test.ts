import { conformance } from 'millrace/conformance'
import { layered } from '../../src/layers/layered.ts'
import { settleEach } from '../../src/layers/settle-each.ts'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { backendUrl } from '../backends.ts'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { type Register, runKits } from '../kits.ts'
import type { MortalTop } from '../layers/bare-harness.ts'
import { mortalStore } from '../layers/mortal.ts'
import { kafkaHarness } from './kafka-harness.ts'

const brokers = backendUrl('kafka')

/** All that start-up chooses, with one store for all connections. */
function withStore(): (raw: Transport) => Promise<MortalTop> {
  const connector = memoryStore()
  const context = { clock: systemClock(), random: Math.random, logger: silentLogger } as const
  const signal = new AbortController().signal
  return async (raw) => {
    const opened = await connector.connect({ ...context, signal, migrate: 'auto' })
    const { thing: store, die } = mortalStore(opened)
    return { ...layered(raw, { ...context, store }), die }
  }
}

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
