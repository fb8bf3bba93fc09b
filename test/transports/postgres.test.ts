import { after, describe, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { recordResult } from '../conformance-results.ts'
import { type PostgresHarnessOptions, postgresHarness } from './postgres-harness.ts'
import { NO_SERVER, pgBouncer, postgresServers } from './postgres-servers.ts'

const depth = process.env.MILLRACE_DEPTH === 'full' ? 'full' : 'quick'

const [newest, ...older] = postgresServers()
const pooler = pgBouncer()

const subjects: readonly PostgresHarnessOptions[] = [
  ...(newest
    ? ([
        { server: newest, client: 'address' },
        { server: newest, client: 'postgres.js' },
      ] as const)
    : []),
  ...older.map((server) => ({ server, client: 'pg' }) as const),
  ...(pooler ? [{ server: pooler, client: 'pg' } as const] : []),
]

if (subjects.length === 0) test('postgres', { skip: NO_SERVER }, () => {})

/** Most of the kit waits for leases and delays; its tests use a queue of their own each and may wait together. Not
 * behind the pooler: its two connections are taken by the users' transactions of two tests. */
const AT_ONCE = 4

for (const subject of subjects) {
  const harness = await postgresHarness(subject)
  after(() => harness.dispose())
  const promises: { readonly title: string; readonly keep: () => Promise<void> }[] = []
  await conformance({
    test: (title, keep) => promises.push({ title, keep }),
    harness,
    depth,
    onResult: recordResult,
  })
  describe(harness.name, { concurrency: subject.server.pooled ? 1 : AT_ONCE }, () => {
    for (const { title, keep } of promises) test(title, keep)
  })
}
