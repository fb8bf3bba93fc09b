import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memory } from 'millrace/memory'
import { faulty, type Mishap, seededRandom, virtualClock } from 'millrace/testing'
import type { Envelope } from '../../../src/model/envelope.ts'
import { silentLogger } from '../../../src/model/logger.ts'
import type { Transport } from '../../../src/transport/transport.ts'

const signal = new AbortController().signal

interface Subject {
  readonly sound: Transport
  readonly weak: Transport
  readonly clock: ReturnType<typeof virtualClock>
}

/** A transport whose n-th call suffers the n-th mishap. */
async function weakened(...mishaps: readonly (Mishap | undefined)[]): Promise<Subject> {
  const clock = virtualClock()
  const context = { signal, clock, random: () => 0, logger: silentLogger, migrate: 'auto' } as const
  const sound = await memory().connect(context)
  await sound.topology.ensure([{ name: 'q', owner: 'o', maxDepth: undefined }], signal)
  const left = [...mishaps]
  const weaken = faulty({ random: seededRandom('1'), clock, plan: () => left.shift(), slowMs: 500 })
  return { sound, clock, weak: weaken(sound) }
}

function envelopes(count: number): Envelope[] {
  const body = new Uint8Array(1)
  return Array.from({ length: count }, (_, at) => ({
    id: `m${at}`,
    body,
    headers: {},
    priority: 0,
  }))
}

async function depthOf(transport: Transport): Promise<number | undefined> {
  return (await transport.browse?.gauge('q'))?.depth
}

async function faultOf(transport: Transport, call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => assert.fail('expected the call to reject'),
    (reason: unknown) => reason,
  )
  const { code, outcome } = transport.diagnose(error)
  return `${code}, ${outcome}`
}

test('A rejected send stored nothing, and its fault says so.', async () => {
  const { sound, weak } = await weakened('rejected')
  const send = weak.send('q', envelopes(3), { signal })
  assert.equal(await faultOf(weak, send), 'unavailable, notApplied')
  assert.equal(await depthOf(sound), 0)
})

test('An unanswered send stored everything, and its fault leaves it open.', async () => {
  const { sound, weak } = await weakened('unanswered')
  const send = weak.send('q', envelopes(3), { signal })
  assert.equal(await faultOf(weak, send), 'unavailable, unknown')
  assert.equal(await depthOf(sound), 3)
})

test('A refused send stored exactly the items that it answered ok.', async () => {
  const { sound, weak } = await weakened('refused')
  const sent = await weak.send('q', envelopes(20), { signal })
  const stored = sent.filter((outcome) => outcome.ok).length
  assert.ok(stored > 0 && stored < 20)
  assert.equal(await depthOf(sound), stored)
  for (const [at, outcome] of sent.entries()) {
    const message = await sound.browse?.get?.('q', `m${at}`)
    assert.equal(message !== undefined, outcome.ok)
  }
})

test('An atomic send is never refused in part.', async () => {
  const { sound, weak } = await weakened('refused')
  const send = weak.send('q', envelopes(20), { signal, atomic: true })
  assert.equal(await faultOf(weak, send), 'unavailable, notApplied')
  assert.equal(await depthOf(sound), 0)
})

test('A slow call is done when its time has come.', async () => {
  const { sound, weak, clock } = await weakened('slow')
  const send = weak.send('q', envelopes(1), { signal })
  await clock.advance(499)
  assert.equal(await depthOf(sound), 0)
  await clock.advance(1)
  assert.equal((await send)[0]?.ok, true)
})

test('An unanswered settlement was done: asked again, the message is lost.', async () => {
  const { weak } = await weakened(undefined, undefined, 'unanswered')
  await weak.send('q', envelopes(1), { signal })
  const subscription = await weak.subscribe('q', { group: 'g', leaseMs: 1_000, maxInFlight: 1 })
  const [delivery] = await subscription.receive({ max: 1, waitMs: 0, signal })
  assert.ok(delivery)
  const settle = subscription.settle([{ as: 'acked', delivery }])
  assert.equal(await faultOf(weak, settle), 'unavailable, unknown')
  const [again] = await subscription.settle([{ as: 'acked', delivery }])
  assert.equal(again && !again.ok && again.fault.code, 'lost')
})

test('An unanswered receive leaves its messages to the lease.', async () => {
  const { sound, weak, clock } = await weakened(undefined, 'unanswered')
  await weak.send('q', envelopes(1), { signal })
  const subscription = await weak.subscribe('q', { group: 'g', leaseMs: 1_000, maxInFlight: 1 })
  const receive = subscription.receive({ max: 1, waitMs: 0, signal })
  assert.equal(await faultOf(weak, receive), 'unavailable, unknown')
  assert.equal((await sound.browse?.gauge('q'))?.inFlight, 1)
  await clock.advance(1_000)
  assert.equal((await subscription.receive({ max: 1, waitMs: 0, signal }))[0]?.history.crashes, 1)
})

test('Rates are met, and the same seed gives the same mishaps.', async () => {
  const clock = virtualClock()
  const mishapsOf = async (seed: string): Promise<readonly Mishap[]> => {
    const { sound } = await weakened()
    const mishaps: Mishap[] = []
    const weaken = faulty({
      random: seededRandom(seed),
      clock,
      rates: { rejected: 0.1, unanswered: 0.2 },
      onMishap: (_call, mishap) => mishaps.push(mishap),
    })
    const weak = weaken(sound)
    for (let call = 0; call < 1_000; call++) await weak.send('q', [], { signal }).catch(() => {})
    return mishaps
  }
  const mishaps = await mishapsOf('a')
  const counts = Map.groupBy(mishaps, (mishap) => mishap)
  assert.ok(Math.abs((counts.get('rejected')?.length ?? 0) - 100) < 40)
  assert.ok(Math.abs((counts.get('unanswered')?.length ?? 0) - 200) < 60)
  assert.equal(counts.size, 2)
  assert.deepEqual(await mishapsOf('a'), mishaps)
})
