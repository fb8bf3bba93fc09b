import { after, describe, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { backendUrl } from '../backends.ts'
import { recordResult } from '../conformance-results.ts'
import { natsHarness } from './nats-harness.ts'

const depth = process.env.MILLRACE_DEPTH === 'full' ? 'full' : 'quick'

/** Most of the kit waits for leases and delays; its tests use a queue of their own each and may wait together. */
const AT_ONCE = 4

const servers = backendUrl('nats')

for (const withStore of servers === undefined ? [] : [false, true]) {
  const harness = await natsHarness(servers ?? '', { withStore })
  after(() => harness.dispose())
  const promises: { readonly title: string; readonly keep: () => Promise<void> }[] = []
  await conformance({
    test: (title, keep) => promises.push({ title, keep }),
    harness,
    depth,
    onResult: recordResult,
  })
  describe(harness.name, { concurrency: AT_ONCE }, () => {
    for (const { title, keep } of promises) test(title, keep)
  })
}
