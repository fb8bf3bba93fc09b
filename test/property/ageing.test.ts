import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Harness } from 'millrace/conformance'
import { lineTurn, standing } from '../../src/transport/ageing.ts'
import { memoryHarness } from '../transports/memory-harness.ts'
import { nodeMemoryHarness } from '../transports/sqlite-harness.ts'

const { signal } = new AbortController()

interface Sent {
  readonly id: string
  readonly priority: number
  readonly readyAt: number
}

/** Sends and receives on the virtual clock, in any order; answers what was handed out, each with what waited then. */
async function run(
  harness: Harness,
  steps: readonly (readonly [wait: number, priority: number, take: number])[],
  ageingMs: number,
): Promise<readonly { readonly out: Sent; readonly waiting: readonly Sent[] }[]> {
  const { time } = harness
  assert.ok(time)
  const transport = await harness.connect()
  const queue = await harness.freshQueue({ ageingMs })
  const options = { group: 'g', leaseMs: 3_600_000, maxInFlight: 1_000 }
  const subscription = await transport.subscribe(queue, options)
  const waiting = new Map<string, Sent>()
  const seen: { out: Sent; waiting: readonly Sent[] }[] = []
  for (const [at, [wait, priority, take]] of steps.entries()) {
    await time.advance(wait)
    const sent = { id: `m${at}`, priority, readyAt: time.now() }
    await transport.send(queue, [{ ...sent, readyAt: 0, body: new Uint8Array(), headers: {} }], {
      signal,
    })
    waiting.set(sent.id, sent)
    if (take === 0) continue
    for (const delivery of await subscription.receive({ max: take, waitMs: 0, signal })) {
      const out = waiting.get(delivery.envelope.id)
      assert.ok(out)
      waiting.delete(out.id)
      seen.push({ out, waiting: [...waiting.values()] })
    }
  }
  await transport.close()
  return seen
}

const steps = fc.array(
  fc.tuple(fc.nat({ max: 30_000 }), fc.integer({ min: 0, max: 9 }), fc.nat({ max: 3 })),
  { minLength: 1, maxLength: 60, size: 'max' },
)
const ages = fc.integer({ min: 1, max: 60_000 })

const harnesses = { memory: memoryHarness, sqlite: nodeMemoryHarness }

for (const [name, open] of Object.entries(harnesses)) {
  test(`${name}: Nothing is overtaken by what became ready later than its lower priority is worth.`, async () => {
    const harness = await open()
    await fc.assert(
      fc.asyncProperty(steps, ages, async (chosen, ageingMs) => {
        for (const { out, waiting } of await run(harness, chosen, ageingMs)) {
          for (const other of waiting) {
            const lead = (out.priority - other.priority) * ageingMs
            assert.ok(
              out.readyAt - other.readyAt <= lead,
              `${JSON.stringify(out)} went before ${JSON.stringify(other)}, ageing ${ageingMs}`,
            )
          }
        }
      }),
      { numRuns: 200 },
    )
    await harness.dispose()
  })
}

test('Under endless work of the highest priority the lowest has its turn after nine levels of waiting.', async () => {
  const ageingMs = 1_000
  // One low message, then each 100 ms two of the highest, of which one is taken: their backlog only grows.
  const flood = Array.from({ length: 400 }, (_, at): [number, number, number] => [
    50,
    at === 0 ? 0 : 9,
    at % 2,
  ])
  const seen = await run(memoryHarness(), flood, ageingMs)
  const low = seen.find(({ out }) => out.priority === 0)
  assert.ok(low, 'it was handed out')
  const before = seen.slice(0, seen.indexOf(low)).map(({ out }) => out.readyAt)
  assert.ok(Math.max(...before) <= low.out.readyAt + 9 * ageingMs)
})

test('A turn ends where another line would come first, and of equal standing the higher goes first.', () => {
  const head = fc.record({ priority: fc.integer({ min: 0, max: 9 }), readyAt: fc.nat(100) })
  const heads = fc.uniqueArray(head, { minLength: 1, selector: ({ priority }) => priority })
  fc.assert(
    fc.property(heads, fc.integer({ min: 1, max: 30 }), fc.nat(200), (lines, ageingMs, readyAt) => {
      const turn = lineTurn(lines, ageingMs)
      assert.ok(turn)
      const next = { priority: turn.head.priority, readyAt: Math.max(readyAt, turn.head.readyAt) }
      const isFirst = lines.every((line) => {
        if (line === turn.head) return true
        const apart = standing(line, ageingMs) - standing(next, ageingMs)
        return apart > 0 || (apart === 0 && next.priority > line.priority)
      })
      assert.equal(next.readyAt <= turn.untilReadyAt, isFirst)
    }),
  )
})
