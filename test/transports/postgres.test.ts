import { test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { type Kit, runKits } from '../kits.ts'
import { type PostgresHarnessOptions, postgresHarness } from './postgres-harness.ts'
import { NO_SERVER, pgBouncer, postgresServers } from './postgres-servers.ts'

const [newest, ...older] = postgresServers()
const pooler = pgBouncer()

/** The pooler's takes longest, because its tests do not wait together. */
const subjects: readonly PostgresHarnessOptions[] = [
  ...(pooler ? [{ server: pooler, client: 'pg' } as const] : []),
  ...(newest
    ? ([
        { server: newest, client: 'address' },
        { server: newest, client: 'postgres.js' },
      ] as const)
    : []),
  ...older.map((server) => ({ server, client: 'pg' }) as const),
]

if (subjects.length === 0) test('postgres', { skip: NO_SERVER }, () => {})

const kits: Kit[] = []
for (const subject of subjects) {
  const harness = await postgresHarness(subject)
  kits.push({
    name: harness.name,
    leftToFull: subject.server.pooled,
    // The two connections of the pooler are taken by the users' transactions of two tests.
    atOnce: subject.server.pooled ? 1 : 4,
    register: (test) => conformance({ test, harness, depth: kitDepth, onResult: recordResult }),
    dispose: () => harness.dispose(),
  })
}
await runKits(kits, 2)
