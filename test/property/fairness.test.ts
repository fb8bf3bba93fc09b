import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Harness } from 'millrace/conformance'
import { memoryHarness } from '../transports/memory-harness.ts'
import { redisHarness } from '../transports/redis-harness.ts'
import { redisServers } from '../transports/redis-servers.ts'
import { nodeMemoryHarness } from '../transports/sqlite-harness.ts'

const { signal } = new AbortController()
const [redisServer] = redisServers()
const harnesses: Readonly<Record<string, () => Harness | Promise<Harness>>> = {
  memory: memoryHarness,
  sqlite: nodeMemoryHarness,
  ...(redisServer && {
    redis: () => redisHarness({ name: redisServer.name, address: { url: redisServer.url } }),
  }),
}

const weights = { a: 1, b: 2, c: 0.5, d: 1 } as const
type Key = keyof typeof weights
const keys = ['a', 'b', 'c', 'd'] as const

interface Sent {
  readonly id: string
  readonly key: Key
  /** Of its own key, when it was sent. */
  readonly waitedFor: number
  /** Handed out since, by key. */
  readonly before: Record<Key, number>
}

/** Sends bursts and takes some in between; answers what was handed out, in its order. */
async function run(
  harness: Harness,
  steps: readonly (readonly [key: Key, burst: number, take: number])[],
): Promise<readonly Sent[]> {
  const transport = await harness.connect()
  const queue = await harness.freshQueue()
  const options = { group: 'g', leaseMs: 3_600_000, maxInFlight: 10_000 }
  const subscription = await transport.subscribe(queue, options)
  const waiting = new Map<string, Sent>()
  const out: Sent[] = []
  const take = async (max: number): Promise<void> => {
    if (max === 0) return
    for (const { envelope } of await subscription.receive({ max, waitMs: 0, signal })) {
      const sent = waiting.get(envelope.id)
      assert.ok(sent)
      waiting.delete(sent.id)
      for (const other of waiting.values()) other.before[sent.key] += 1
      out.push(sent)
    }
  }
  for (const [at, [key, burst, taken]] of steps.entries()) {
    const batch = Array.from({ length: burst }, (_, n) => {
      const waitedFor = [...waiting.values()].filter((one) => one.key === key).length
      const sent = { id: `m${at}-${n}`, key, waitedFor, before: { a: 0, b: 0, c: 0, d: 0 } }
      waiting.set(sent.id, sent)
      const share = { fairKey: key, fairWeight: weights[key] }
      return { id: sent.id, body: new Uint8Array(), headers: {}, priority: 0, ...share }
    })
    await transport.send(queue, batch, { signal })
    await take(taken)
  }
  await take(1_000)
  assert.equal(waiting.size, 0)
  await transport.close()
  return out
}

const steps = fc.array(
  fc.tuple(fc.constantFrom(...keys), fc.integer({ min: 1, max: 12 }), fc.nat({ max: 8 })),
  { minLength: 1, maxLength: 40, size: 'max' },
)

for (const [name, open] of Object.entries(harnesses)) {
  test(`${name}: No message waits for more of another key than the weights allow, however many of it wait.`, async () => {
    const harness = await open()
    await fc.assert(
      fc.asyncProperty(steps, async (chosen) => {
        for (const { id, key, waitedFor, before } of await run(harness, chosen)) {
          for (const other of keys) {
            if (other === key) continue
            const most = Math.floor(((waitedFor + 1) * weights[other]) / weights[key] + 1e-9) + 1
            assert.ok(before[other] <= most, `${id}: ${before[other]} of ${other}, ${most} may`)
          }
        }
      }),
      { numRuns: 100 },
    )
    await harness.dispose()
  })

  test(`${name}: Each key keeps the order of its sends.`, async () => {
    const harness = await open()
    await fc.assert(
      fc.asyncProperty(steps, async (chosen) => {
        for (const sent of await run(harness, chosen))
          assert.equal(sent.before[sent.key], sent.waitedFor)
      }),
      { numRuns: 50 },
    )
    await harness.dispose()
  })
}
