import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Harness, MovableTime } from 'millrace/conformance'
import { faulty } from '../../src/layers/faulty.ts'
import { LOOK_MS } from '../../src/layers/level-line.ts'
import { levelQueues } from '../../src/layers/levels.ts'
import { priorities } from '../../src/layers/priorities.ts'
import type { Clock } from '../../src/model/clock.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { seededRandom } from '../../src/testing/seeded-random.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import { byDepth } from '../depth.ts'
import { bare } from '../layers/bare.ts'
import { memoryHarness } from '../transports/memory-harness.ts'

const { signal } = new AbortController()
const LEVELS = 4
const RUNS = byDepth({ quick: 50, full: 300, long: 5_000 })

/** A queue with levels on a broker without priorities, whose numbers are asked below all layers. */
interface World {
  readonly transport: Transport
  readonly time: MovableTime
  readonly queue: string
  /** What the broker has handed out and not heard of since, of all levels. */
  inFlight(): Promise<number>
  end(): Promise<void>
}

async function open(
  ageingMs: number,
  weaken: (broker: Transport, clock: Clock) => Transport = (broker) => broker,
): Promise<World> {
  const harness: Harness = memoryHarness()
  const { time } = harness
  assert.ok(time)
  const below = bare(await harness.connect(), { priorities: 1 })
  const transport = priorities(weaken(below, time), { most: LEVELS, clock: time })
  const queue = 'levels'
  const spec = { name: queue, owner: 'team-a', maxDepth: undefined, ageingMs, priorities: LEVELS }
  await transport.topology.ensure([spec], signal)
  return {
    ...{ transport, time, queue },
    inFlight: async () => {
      const gauges = levelQueues(queue, LEVELS).map((place) => below.browse?.gauge(place))
      const numbers = await Promise.all(gauges)
      return numbers.reduce((sum, gauge) => sum + (gauge?.inFlight ?? 0), 0)
    },
    end: async () => {
      await transport.close()
      await harness.dispose()
    },
  }
}

function subscribed({ transport, queue }: World): Promise<Subscription> {
  return transport.subscribe(queue, { group: 'g', leaseMs: 30_000, maxInFlight: 100 })
}

function message(id: string, priority: number): Envelope {
  return { id, priority, body: new Uint8Array(), headers: {} }
}

interface Sent {
  readonly id: string
  readonly priority: number
  readonly readyAt: number
}

/** Shorter than what waits in hand stays there: a broker may put what it gets back behind the others. */
const steps = fc.array(
  fc.tuple(
    fc.nat({ max: 900 }),
    fc.array(fc.nat({ max: LEVELS - 1 }), { maxLength: 4 }),
    fc.integer({ min: 1, max: 3 }),
  ),
  { minLength: 1, maxLength: 40, size: 'max' },
)
const ages = fc.integer({ min: 1, max: 10_000 })

test('Nothing is overtaken by what became ready later than its lower priority is worth, once it could be seen.', async () => {
  await fc.assert(
    fc.asyncProperty(steps, ages, async (chosen, ageingMs) => {
      const world = await open(ageingMs)
      const { transport, time, queue } = world
      const subscription = await subscribed(world)
      const waiting = new Map<string, Sent>()
      for (const [at, [wait, sends, max]] of chosen.entries()) {
        await time.advance(wait)
        for (const [n, priority] of sends.entries()) {
          const sent = { id: `m${at}-${n}`, priority, readyAt: time.now() }
          await transport.send(queue, [message(sent.id, priority)], { signal })
          waiting.set(sent.id, sent)
        }
        for (const { envelope } of await subscription.receive({ max, waitMs: 0, signal })) {
          const out = waiting.get(envelope.id)
          assert.ok(out)
          assert.equal(envelope.priority, out.priority)
          waiting.delete(out.id)
          for (const other of waiting.values()) {
            const lead = (out.priority - other.priority) * ageingMs
            assert.ok(
              out.readyAt - other.readyAt <= lead || time.now() - other.readyAt < LOOK_MS,
              `${JSON.stringify(out)} went before ${JSON.stringify(other)}, ageing ${ageingMs}`,
            )
          }
        }
      }
      await world.end()
    }),
    { numRuns: RUNS },
  )
})

test('Under endless work of the highest level the lowest has its turn when its levels of waiting are over.', async () => {
  const ageingMs = 1_000
  const world = await open(ageingMs)
  const { transport, time, queue } = world
  const subscription = await subscribed(world)
  const began = time.now()
  await transport.send(queue, [message('low', 0)], { signal })
  // Two of the highest for each one that is taken: their backlog only grows.
  for (let at = 0; ; at++) {
    const flood = [`a${at}`, `b${at}`].map((id) => message(id, LEVELS - 1))
    await transport.send(queue, flood, { signal })
    const [delivery] = await subscription.receive({ max: 1, waitMs: 0, signal })
    if (delivery?.envelope.id === 'low') break
    assert.ok(time.now() - began < 60_000, 'it starves')
    await time.advance(100)
  }
  // Those of the first three seconds go before it, one each 100 ms, two of them sent: twice that.
  const overtakes = (LEVELS - 1) * ageingMs
  assert.ok(time.now() - began >= overtakes)
  assert.ok(time.now() - began <= 2 * overtakes + 200, `after ${time.now() - began} ms`)
  await world.end()
})

async function renewed({ renew }: Subscription, hand: readonly Delivery[]): Promise<void> {
  await renew?.(hand, 30_000)
}

type Act =
  | { readonly act: 'send'; readonly priority: number; readonly count: number }
  | { readonly act: 'receive'; readonly max: number }
  | { readonly act: 'abort'; readonly max: number }
  | { readonly act: 'ack'; readonly count: number }
  | { readonly act: 'release'; readonly count: number }
  | { readonly act: 'wait'; readonly ms: number }

const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    act: fc.constant('send' as const),
    priority: fc.nat({ max: LEVELS - 1 }),
    count: fc.integer({ min: 1, max: 12 }),
  }),
  fc.record({ act: fc.constant('receive' as const), max: fc.integer({ min: 1, max: 8 }) }),
  fc.record({ act: fc.constant('abort' as const), max: fc.integer({ min: 1, max: 8 }) }),
  fc.record({ act: fc.constant('ack' as const), count: fc.integer({ min: 1, max: 8 }) }),
  fc.record({ act: fc.constant('release' as const), count: fc.integer({ min: 1, max: 8 }) }),
  fc.record({ act: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 20_000 }) }),
)

/** Plays acts on one consumer. What it holds is checked against what the broker says after each of them. */
async function play(world: World, acts: readonly Act[], isFaulty: boolean): Promise<void> {
  const { transport, time, queue } = world
  const subscription = await subscribed(world)
  const sent = new Set<string>()
  const done = new Set<string>()
  let hand: readonly Delivery[] = []
  let mostAsked = 0
  const tried = async <T>(call: Promise<T>): Promise<T | undefined> =>
    isFaulty ? call.catch(() => undefined) : call

  const receive = async (max: number, abort?: AbortSignal): Promise<void> => {
    const asked = { max, waitMs: 0, signal: abort ?? signal }
    const came = (await tried(subscription.receive(asked))) ?? []
    assert.ok(came.length <= max)
    for (const { envelope } of came) {
      assert.ok(!done.has(envelope.id) || isFaulty, `${envelope.id} came after its ack`)
      assert.ok(!hand.some((one) => one.envelope.id === envelope.id) || isFaulty, 'twice in hand')
    }
    hand = [...hand, ...came]
    mostAsked = Math.max(mostAsked, max)
    // What waits in hand: as many as were asked for, and one of each level.
    if (!isFaulty) assert.ok((await world.inFlight()) - hand.length <= mostAsked + LEVELS)
  }
  const settle = async (count: number, as: 'ack' | 'release'): Promise<void> => {
    const some = hand.slice(0, count)
    hand = hand.slice(count)
    const outcomes = await tried(
      subscription.settle(
        some.map((delivery) =>
          as === 'ack'
            ? { as: 'acked', delivery }
            : { as: 'released', delivery, delayMs: 0, counted: false },
        ),
      ),
    )
    for (const [i, { envelope }] of some.entries()) {
      const ok = outcomes?.[i]?.ok
      assert.ok(ok || isFaulty)
      if (as === 'ack') done.add(envelope.id)
    }
  }
  const settleAll = (): Promise<void> => settle(hand.length, 'ack')

  for (const one of acts) {
    if (one.act === 'send') {
      for (let n = 0; n < one.count; n++) {
        const id = `m${sent.size}`
        const [outcome] =
          (await tried(transport.send(queue, [message(id, one.priority)], { signal }))) ?? []
        if (outcome?.ok) sent.add(id)
      }
    } else if (one.act === 'receive') await receive(one.max)
    else if (one.act === 'abort') {
      const abort = new AbortController()
      abort.abort()
      await receive(one.max, abort.signal)
    } else if (one.act === 'wait') {
      await time.advance(one.ms)
      // Leases of what runs are the worker's to keep.
      if (hand.length > 0) await tried(renewed(subscription, hand))
      if (!isFaulty && one.ms >= 1_000) assert.equal(await world.inFlight(), hand.length)
    } else await settle(one.count, one.act)
  }
  await settleAll()
  for (let turn = 0; done.size < sent.size; turn++) {
    assert.ok(turn < 2_000, `${sent.size - done.size} messages are lost`)
    await receive(8)
    await settleAll()
    await time.advance(500)
  }
}

test('What waits in hand is bounded, goes back when nobody asks, and nothing is lost or doubled.', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(act, { maxLength: 60, size: 'max' }),
      ages,
      async (acts, ageingMs) => {
        const world = await open(ageingMs)
        await play(world, acts, false)
        await world.end()
      },
    ),
    { numRuns: RUNS },
  )
})

test('Whatever fails below the levels, nothing is lost.', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(act, { maxLength: 40, size: 'max' }),
      fc.nat(),
      async (acts, seed) => {
        const random = seededRandom(`levels ${seed}`)
        const rates = { rejected: 0.05, refused: 0.05, unanswered: 0.05 }
        const world = await open(1_000, (broker, clock) => faulty({ random, clock, rates })(broker))
        await play(world, acts, true)
        await world.end()
      },
    ),
    { numRuns: RUNS },
  )
})
