import { conformance } from 'millrace/conformance'
import { backendUrl } from '../backends.ts'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { type Kit, runKits } from '../kits.ts'
import { natsHarness } from './nats-harness.ts'

const servers = backendUrl('nats')

/** What start-up stacks for choices that few users make. Eight lanes: the keys of the promises, A, B and C, are in three of them. */
const kinds = [
  { lanes: 8, withStore: true },
  { schedules: false },
  { schedules: false, withStore: true },
] as const

const kits: Kit[] = []
for (const kind of servers === undefined ? [] : kinds) {
  const harness = await natsHarness(servers ?? '', kind)
  kits.push({
    name: harness.name,
    atOnce: 3,
    leftToFull: true,
    register: (test) => conformance({ test, harness, depth: kitDepth, onResult: recordResult }),
    dispose: () => harness.dispose(),
  })
}
await runKits(kits, 2)
