import { conformance } from 'millrace/conformance'
import { backendUrl } from '../backends.ts'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { type Kit, runKits } from '../kits.ts'
import { rabbitHarness } from './rabbitmq-harness.ts'

const url = backendUrl('rabbitmq')

/** Fewer lanes than keys, so that keys share them. */
const subjects = [
  { queueType: 'quorum', lanes: 3 },
  { queueType: 'quorum', lanes: 3, layers: true },
] as const

const kits: Kit[] = []
for (const subject of url === undefined ? [] : subjects) {
  const harness = await rabbitHarness({ url: url ?? '', ...subject })
  kits.push({
    name: harness.name,
    atOnce: 4,
    leftToFull: !('layers' in subject),
    register: (test) => conformance({ test, harness, depth: kitDepth, onResult: recordResult }),
    dispose: () => harness.dispose(),
  })
}
// One after the other: the broker is what works here.
await runKits(kits, 1)
