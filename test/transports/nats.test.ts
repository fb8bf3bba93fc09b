import { conformance } from 'millrace/conformance'
import { backendUrl } from '../backends.ts'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { type Kit, runKits } from '../kits.ts'
import { natsHarness } from './nats-harness.ts'

const servers = backendUrl('nats')

const kits: Kit[] = []
/** Eight lanes: the keys of the promises, A, B and C, are in three of them. */
const kinds = [
  { withStore: false },
  { withStore: true },
  { lanes: 8 },
  { withStore: true, levels: 3 },
] as const
for (const kind of servers === undefined ? [] : kinds) {
  const harness = await natsHarness(servers ?? '', kind)
  kits.push({
    name: harness.name,
    atOnce: 3,
    // Lanes have tests of their own, and levels are a layer that memory shows, too.
    leftToFull: 'lanes' in kind || 'levels' in kind,
    register: (test) => conformance({ test, harness, depth: kitDepth, onResult: recordResult }),
    dispose: () => harness.dispose(),
  })
}
await runKits(kits, 2)
