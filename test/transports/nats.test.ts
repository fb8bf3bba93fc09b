import { conformance } from 'millrace/conformance'
import { backendUrl } from '../backends.ts'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { type Kit, runKits } from '../kits.ts'
import { natsHarness } from './nats-harness.ts'

const servers = backendUrl('nats')

const kits: Kit[] = []
for (const withStore of servers === undefined ? [] : [false, true]) {
  const harness = await natsHarness(servers ?? '', { withStore })
  kits.push({
    name: harness.name,
    atOnce: 3,
    register: (test) => conformance({ test, harness, depth: kitDepth, onResult: recordResult }),
    dispose: () => harness.dispose(),
  })
}
await runKits(kits, 2)
