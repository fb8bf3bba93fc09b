import assert from 'node:assert/strict'
import type { Harness } from 'millrace/conformance'
import { withScope } from '../../src/conformance/scope.ts'
import { totalQueue } from '../../src/conformance/workloads/total-queue.ts'
import { seededRandom } from '../../src/testing/seeded-random.ts'

/** Sends and handles so many on this harness, and disposes of it; fails when one is lost, or came that nobody sent. */
export async function nothingIsLost(
  harness: Harness,
  seed: number,
  messages: number,
): Promise<void> {
  const options = { harness, random: seededRandom(`kit ${seed}`), depth: 'quick' } as const
  await withScope(options, async (scope) => {
    const history = await totalQueue(scope, {
      messages,
      producers: 2,
      consumers: 3,
      vanishes: 2,
      weaken: (transport) => transport,
      withinMs: 300_000,
    })
    const { lost, unknown } = history.verdict()
    assert.deepEqual({ lost, unknown }, { lost: [], unknown: [] })
    assert.equal(history.sent.size, messages)
  })
  await harness.dispose()
}
