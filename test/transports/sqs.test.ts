import { conformance } from 'millrace/conformance'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { type Kit, runKits } from '../kits.ts'
import { type SqsHarnessOptions, sqsHarness } from './sqs-harness.ts'
import { sqsServers } from './sqs-servers.ts'

/**
 * The layers stand on ElasticMQ only: on a busy machine fauxqs takes seconds for an answer, longer than a lease, and then a
 * message doubles with its copy, as it may.
 */
const subjects = sqsServers().flatMap((server): readonly SqsHarnessOptions[] => {
  const bare = (['standard', 'fifo'] as const).map((kind) => ({ server, kind, isLayered: false }))
  if (server.name !== 'elasticmq') return bare
  const layered = bare.map((one) => ({ ...one, isLayered: true }))
  return [...bare, ...layered, { server, kind: 'standard', isLayered: true, levels: 3 }]
})

const kits: Kit[] = []
for (const subject of subjects) {
  const harness = await sqsHarness(subject)
  kits.push({
    name: harness.name,
    atOnce: 6,
    leftToFull: subject.server.name === 'fauxqs' || subject.levels !== undefined,
    register: (test) => conformance({ test, harness, depth: kitDepth, onResult: recordResult }),
    dispose: () => harness.dispose(),
  })
}
// One after the other: stand-ins that share the machine with two kits answer later than a lease lasts.
await runKits(kits, 1)
