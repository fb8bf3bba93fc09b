import { after, describe, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { recordResult } from '../conformance-results.ts'
import { sqsHarness } from './sqs-harness.ts'
import { NO_SERVER, sqsServers } from './sqs-servers.ts'

const depth = process.env.MILLRACE_DEPTH === 'full' ? 'full' : 'quick'
const servers = sqsServers()

if (servers.length === 0) test('sqs', { skip: NO_SERVER }, () => {})

/** Most of the kit waits for leases and delays; its tests use a queue of their own each and may wait together. */
const AT_ONCE = 6

for (const server of servers) {
  for (const kind of ['standard', 'fifo'] as const) {
    const harness = await sqsHarness(server, kind)
    after(() => harness.dispose())
    const promises: { readonly title: string; readonly keep: () => Promise<void> }[] = []
    await conformance({
      test: (title, keep) => promises.push({ title, keep }),
      harness,
      depth,
      deviations: server.deviations.filter((each) => (each.kind ?? kind) === kind),
      onResult: recordResult,
    })
    describe(harness.name, { concurrency: AT_ONCE }, () => {
      for (const { title, keep } of promises) test(title, keep)
    })
  }
}
