import { after, describe, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { recordResult } from '../conformance-results.ts'
import { sqsHarness } from './sqs-harness.ts'
import { sqsServers } from './sqs-servers.ts'

const depth = process.env.MILLRACE_DEPTH === 'full' ? 'full' : 'quick'

/** Most of the kit waits for leases and delays; its tests use a queue of their own each and may wait together. */
const AT_ONCE = 6

/**
 * The layers stand on ElasticMQ only: on a busy machine fauxqs takes seconds for an answer, longer than a lease, and then a
 * message doubles with its copy, as it may.
 */
const subjects = sqsServers().flatMap((server) =>
  (['standard', 'fifo'] as const).flatMap((kind) =>
    (server.name === 'elasticmq' ? [false, true] : [false]).map((isLayered) => {
      return { server, kind, isLayered }
    }),
  ),
)

for (const subject of subjects) {
  const harness = await sqsHarness(subject)
  const promises: { readonly title: string; readonly keep: () => Promise<void> }[] = []
  await conformance({
    test: (title, keep) => promises.push({ title, keep }),
    harness,
    depth,
    onResult: recordResult,
  })
  describe(harness.name, { concurrency: AT_ONCE }, () => {
    after(() => harness.dispose())
    for (const { title, keep } of promises) test(title, keep)
  })
}
