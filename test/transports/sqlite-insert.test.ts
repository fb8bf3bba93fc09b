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

// Rows go in by fifties and tens; an id that is there already must cost neither its neighbours nor their order, and a
// queue takes exactly what fits.
test('a batch with known ids anywhere stores exactly the others, in order, as long as there is room', async () => {
  const { file, dispose } = await databaseFile()
  const transport = await sqlite({ file }).connect({
    signal,
    clock: virtualClock(),
    random: Math.random,
    logger: silentLogger,
    migrate: 'auto',
  })
  let round = 0
  const some = fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 45 })
  const rising = fc.tuple(fc.nat(100), fc.integer({ min: 1, max: 130 }))
  const ids = fc.oneof(
    some,
    rising.map(([from, length]) => Array.from({ length }, (_, i) => from + i)),
  )
  const depth = fc.option(fc.nat(200), { nil: undefined })
  await fc.assert(
    fc.asyncProperty(ids, ids, fc.boolean(), depth, async (before, batch, alike, maxDepth) => {
      round += 1
      const queue = `q${round}`
      await transport.topology.ensure([{ name: queue, owner: 'team', maxDepth }], signal)
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
          if (!known.has(n) && known.size === maxDepth) {
            const full = { code: 'full', retryable: true, outcome: 'notApplied' }
            assert.deepEqual(sent[at], { ok: false, fault: full })
            continue
          }
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
        maxInFlight: 300,
      })
      const taken = await subscription.receive({ max: 300, waitMs: 0, signal })
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
    { numRuns: 120 },
  )
  await transport.close()
  await dispose()
})

test('a batch with the id of a dead letter anywhere in it stores exactly the others', async () => {
  const { file, dispose } = await databaseFile()
  const transport = await sqlite({ file }).connect({
    signal,
    clock: virtualClock(),
    random: Math.random,
    logger: silentLogger,
    migrate: 'auto',
  })
  const envelope = (n: number) => ({
    id: `m${1_000 + n}`,
    body: new Uint8Array([n]),
    headers: same,
    priority: 0,
  })
  const history = { counted: 1, crashes: 0, throttledSince: undefined, records: [], redrives: 0 }
  let round = 0
  const ids = fc.uniqueArray(fc.nat(150), { maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(ids, fc.integer({ min: 1, max: 150 }), async (dead, length) => {
      round += 1
      const queue = `dead${round}`
      await transport.topology.ensure([{ name: queue, owner: 'team', maxDepth: undefined }], signal)
      await transport.send(queue, dead.map(envelope), { signal })
      const options = { group: 'g', leaseMs: 60_000, maxInFlight: 300 }
      const subscription = await transport.subscribe(queue, options)
      const taken = await subscription.receive({ max: 300, waitMs: 0, signal })
      await subscription.settle(
        taken.map((delivery) => ({
          as: 'dead',
          delivery,
          errorClass: 'permanent',
          reason: 'no',
          history,
        })),
      )
      const numbers = Array.from({ length }, (_, n) => n)
      const sent = await transport.send(queue, numbers.map(envelope), { signal })
      assert.deepEqual(
        sent,
        numbers.map((n) => ({ ok: true, id: `m${1_000 + n}`, duplicate: dead.includes(n) })),
      )
      const gauge = await transport.browse?.gauge(queue)
      assert.equal(gauge?.depth, numbers.filter((n) => !dead.includes(n)).length)
      await subscription.close()
    }),
    { numRuns: 60 },
  )
  await transport.close()
  await dispose()
})
