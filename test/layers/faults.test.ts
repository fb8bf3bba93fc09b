import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Harness } from 'millrace/conformance'
import { memoryStore } from 'millrace/store'
import { acked, died, present } from '../../src/conformance/acts.ts'
import { withScope } from '../../src/conformance/scope.ts'
import { totalQueue } from '../../src/conformance/workloads/total-queue.ts'
import { copies } from '../../src/layers/copies.ts'
import { crashMarks } from '../../src/layers/crash-marks.ts'
import { deadLetters } from '../../src/layers/dead-letters.ts'
import { delays } from '../../src/layers/delays.ts'
import { faulty } from '../../src/layers/faulty.ts'
import { pauses } from '../../src/layers/pauses.ts'
import { priorities } from '../../src/layers/priorities.ts'
import { rememberedKeys } from '../../src/layers/remembered-keys.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { seededRandom } from '../../src/testing/seeded-random.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { byDepth } from '../depth.ts'
import { connectStore } from '../stores/store-harness.ts'
import { bareHarness } from './bare-harness.ts'
import { faultyStore } from './faulty-store.ts'
import { mortalStore } from './mortal.ts'

const MESSAGES = byDepth({ full: 150, long: 2_000 })
const SEEDS = byDepth({ quick: 2, full: 5, long: 40 })
/** A second test needs more trouble, because it has fewer calls. */
const SOME = 0.03
const MUCH = 0.06
/** Far more turns than any seed needed (about 150): what is still missing then is lost. */
const TURNS_MAX = 2_000

/** Every layer, and trouble below, between and above all of them, and in the store. */
function troubledHarness(seed: number, rate: number): Harness {
  const random = seededRandom(`layers ${seed}`)
  const connector = memoryStore()
  return bareHarness({
    ...{ name: `faults, seed ${seed}`, more: () => ({ priorities: 1 }), levels: 3 },
    on: async (broker, clock) => {
      const { thing, die } = mortalStore(await connectStore(connector, clock))
      const store = faultyStore(thing, random, rate)
      const trouble = faulty({
        random,
        clock,
        rates: { rejected: rate, refused: rate, unanswered: rate, slow: rate / 3 },
        slowMs: 20,
      })
      const knowing = (transport: Transport): Transport => ({
        ...transport,
        diagnose: (error) => {
          const fault = transport.diagnose(error)
          return fault.code === 'unknown' ? store.diagnose(error) : fault
        },
      })
      const steps = [
        (inner: Transport) => priorities(inner, { most: 3, clock }),
        (inner: Transport) => delays(inner, { store, clock, logger: silentLogger }),
        copies,
        (inner: Transport) => crashMarks(inner, { store, clock, random, copied: true }),
        (inner: Transport) => deadLetters(inner, { store, clock, random }),
        (inner: Transport) => rememberedKeys(inner, store, clock),
        (inner: Transport) => pauses(inner, store, clock),
      ]
      let top = trouble(broker)
      for (const step of steps) top = trouble(knowing(step(top)))
      return { ...top, die }
    },
  })
}

for (let seed = 1; seed <= SEEDS; seed++) {
  test(`whatever fails between the layers, nothing is lost (seed ${seed})`, async () => {
    const harness = troubledHarness(seed, SOME)
    const scope = { harness, random: seededRandom(`kit ${seed}`), depth: 'quick' } as const
    await withScope(scope, async (opened) => {
      const history = await totalQueue(opened, {
        messages: MESSAGES,
        producers: 2,
        consumers: 3,
        vanishes: 2,
        weaken: (transport) => transport,
        withinMs: 300_000,
      })
      const { lost, unknown } = history.verdict()
      assert.deepEqual({ lost, unknown }, { lost: [], unknown: [] })
      assert.equal(history.sent.size, MESSAGES)
    })
    await harness.dispose()
  })
}

for (let seed = 1; seed <= SEEDS; seed++) {
  test(`whatever fails between the layers, every dead letter is kept and comes back (seed ${seed})`, async () => {
    const harness = troubledHarness(seed, MUCH)
    const options = { harness, random: seededRandom(`kit ${seed}`), depth: 'quick' } as const
    await withScope(options, async (scope) => {
      const { near, far, never } = scope
      const queue = await scope.queue()
      /** Time must go by while a call is slow; undefined when it failed. */
      const tried = <T>(call: Promise<T>): Promise<T | undefined> =>
        scope.settles(
          'a call',
          call.catch(() => undefined),
          60_000,
        )
      const sent = Array.from({ length: 40 }, (_, i) =>
        scope.message({ ...keyed(`k${i}`), priority: i % 3 }),
      )
      for (let left = sent; left.length > 0; ) {
        const [first, ...rest] = left
        const outcomes = first && (await tried(near.send(queue, [first], { signal: never })))
        if (outcomes?.[0]?.ok) left = rest
      }
      const missing = (seen: ReadonlySet<string>): number =>
        sent.filter(({ id }) => !seen.has(id)).length
      const shelved = async (): Promise<ReadonlySet<string>> => {
        const page = await present(far.shelf).list(queue, { limit: 1_000 })
        return new Set(page.items.map(({ envelope }) => envelope.id))
      }
      const subscription = await scope.subscribeShortly(near, queue)
      const some = async (): Promise<readonly Delivery[]> =>
        (await tried(subscription.receive({ max: 8, waitMs: 50, signal: never }))) ?? []
      let turns = 0
      while (missing(await shelved()) > 0) {
        assert.ok(turns++ < TURNS_MAX, `${missing(await shelved())} messages never died`)
        await scope.passes(20)
        const dying = (await some()).map((delivery) => died(delivery))
        await tried(subscription.settle(dying))
      }
      const back = new Set<string>()
      turns = 0
      while (missing(back) > 0) {
        assert.ok(turns++ < TURNS_MAX, `${missing(back)} dead letters never came back`)
        await scope.passes(20)
        const waiting = [...(await shelved())]
        await tried(present(far.shelf).redrive(queue, waiting, { actor: 'a', reason: 'r' }))
        const batch = await some()
        for (const { envelope, history } of batch) if (history.redrives > 0) back.add(envelope.id)
        await tried(subscription.settle(batch.map((delivery) => acked(delivery))))
      }
    })
    await harness.dispose()
  })
}

function keyed(key: string): Partial<Envelope> {
  return { remember: [{ kind: 'idempotency', key, fingerprint: 'f', windowMs: 3_600_000 }] }
}
