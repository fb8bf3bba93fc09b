import { conformance } from 'millrace/conformance'
import { backendUrl } from '../backends.ts'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { type Kit, runKits } from '../kits.ts'
import { kafkaHarness } from './kafka-harness.ts'
import { withStore } from './kafka-layered.ts'

const brokers = backendUrl('kafka')

/** With their dead letters in the store, where the broker must not have a topic for them. */
function kitOf(retry: 'hold' | 'park', brokers: string): Kit {
  const harness = kafkaHarness({
    brokers,
    name: `kafka + ${retry}, dead letters in the store`,
    settings: { retry, deadLetters: 'store' },
    on: withStore(),
  })
  return {
    name: harness.name,
    // A connection asks for the queues that were made last.
    atOnce: 1,
    leftToFull: true,
    register: (test) => conformance({ test, harness, depth: kitDepth, onResult: recordResult }),
    dispose: () => harness.dispose(),
  }
}

if (brokers !== undefined) await runKits([kitOf('hold', brokers), kitOf('park', brokers)], 2)
