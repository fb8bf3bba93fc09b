import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { sqlite } from 'millrace/sqlite'
import { virtualClock } from 'millrace/testing'
import { silentLogger } from '../../src/model/logger.ts'
import { databaseFile } from './sqlite-harness.ts'

const { signal } = new AbortController()

/** Messages that share their headers differ in id and body only, and go in through a statement of their own. */
const same = { tenant: 'a' }

// Rows go in by tens; an id that is there already must cost neither its neighbours nor their order.
test('a batch with known ids anywhere stores exactly the others, in order', async () => {
  const { file, dispose } = await databaseFile()
  const transport = await sqlite({ file }).connect({
    signal,
    clock: virtualClock(),
    random: Math.random,
    logger: silentLogger,
    migrate: 'auto',
  })
  let round = 0
  const ids = fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 45 })
  await fc.assert(
    fc.asyncProperty(ids, ids, fc.boolean(), async (before, batch, alike) => {
      round += 1
      const queue = `q${round}`
      await transport.topology.ensure([{ name: queue, owner: 'team', maxDepth: undefined }], signal)
      const known = new Set<number>()
      const order: string[] = []
      for (const numbers of [before, batch]) {
        const sent = await transport.send(
          queue,
          numbers.map((n) => ({
            id: `m${n}`,
            body: new Uint8Array([n]),
            headers: alike ? same : {},
            priority: 3,
          })),
          { signal },
        )
        for (const [at, n] of numbers.entries()) {
          assert.deepEqual(sent[at], { ok: true, id: `m${n}`, duplicate: known.has(n) })
          if (!known.has(n)) order.push(`m${n}`)
          known.add(n)
        }
      }
      const gauge = await transport.browse?.gauge(queue)
      assert.equal(gauge?.depth, known.size)
      const subscription = await transport.subscribe(queue, {
        group: 'g',
        leaseMs: 60_000,
        maxInFlight: 100,
      })
      const taken = await subscription.receive({ max: 100, waitMs: 0, signal })
      assert.deepEqual(
        taken.map((delivery) => delivery.envelope.id),
        order,
      )
      for (const { envelope } of taken) {
        assert.deepEqual(envelope, {
          id: envelope.id,
          body: new Uint8Array([Number(envelope.id.slice(1))]),
          headers: alike ? same : {},
          priority: 3,
        })
      }
      await subscription.settle(taken.map((delivery) => ({ as: 'acked', delivery })))
      await subscription.close()
    }),
    { numRuns: 60 },
  )
  await transport.close()
  await dispose()
})
