import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sendInParts } from '../../../src/layers/in-parts.ts'
import type { Sent } from '../../../src/model/delivery.ts'
import type { Envelope } from '../../../src/model/envelope.ts'
import type { Fault } from '../../../src/model/fault.ts'
import { seededRandom } from '../../../src/testing/seeded-random.ts'
import { inKeyOrder } from '../../../src/transport/in-key-order.ts'
import { refused, stored } from '../../../src/transport/outcomes.ts'
import type { Transport } from '../../../src/transport/transport.ts'

const ROUNDS = 300
const away: Fault = { code: 'unavailable', retryable: true, outcome: 'unknown' }
const { signal } = new AbortController()

/** `A1`: the first of key A; `-1` has no key. */
function batchOf(...names: readonly string[]): readonly Envelope[] {
  return names.map((id) => ({
    ...{ id, body: new Uint8Array(), headers: {}, priority: 0 },
    ...(id.startsWith('-') ? {} : { orderingKey: id.slice(0, 1) }),
  }))
}

function idsOf(batch: readonly Envelope[]): readonly string[] {
  return batch.map(({ id }) => id)
}

/** A backend that refuses some messages and goes away on some calls. */
function backend(random: () => number) {
  const kept: string[] = []
  const send = async (some: readonly Envelope[]): Promise<readonly Sent[]> => {
    if (random() < 0.1) throw new Error('gone')
    return some.map(({ id }) => {
      if (random() < 0.2) return refused('invalid')
      kept.push(id)
      return stored(id)
    })
  }
  return { kept, send }
}

function randomBatch(random: () => number): readonly Envelope[] {
  const counts = new Map<string, number>()
  const names = Array.from({ length: Math.floor(random() * 12) }, () => {
    const key = 'ABC-'[Math.floor(random() * 4)] ?? '-'
    counts.set(key, (counts.get(key) ?? 0) + 1)
    return `${key}${counts.get(key)}`
  })
  return batchOf(...names)
}

/** Of each key the first ones, in order, without a gap; and the outcomes tell the truth. */
function assertInOrder(
  batch: readonly Envelope[],
  kept: readonly string[],
  outcomes: readonly Sent[],
  seed: string,
): void {
  for (const key of 'ABC') {
    const of = (ids: readonly string[]) => ids.filter((id) => id.startsWith(key))
    const mine = of(kept)
    assert.deepEqual(mine, of(idsOf(batch)).slice(0, mine.length), `seed ${seed}`)
  }
  assert.equal(outcomes.length, batch.length, `seed ${seed}`)
  for (const [at, { id }] of batch.entries()) {
    const outcome = outcomes[at]
    if (outcome?.ok) assert.equal(outcome.id, id, `seed ${seed}`)
    assert.equal(outcome?.ok, kept.includes(id), `seed ${seed}: ${id}`)
  }
}

test('nothing of a key is stored behind one that failed, whatever fails and when', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const seed = `${process.env['MILLRACE_SEED'] ?? Date.now()} ${round}`
    const random = seededRandom(seed)
    const { kept, send } = backend(random)
    const batch = randomBatch(random)
    const outcomes = await inKeyOrder(batch, send, () => away).catch(() => undefined)
    // The first call was rejected: then nothing was stored at all.
    if (outcomes === undefined) assert.deepEqual(kept, [], `seed ${seed}`)
    else assertInOrder(batch, kept, outcomes, seed)
  }
})

test('a batch sent in parts keeps the order over its parts', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const seed = `${process.env['MILLRACE_SEED'] ?? Date.now()} ${round}`
    const random = seededRandom(seed)
    const { kept, send } = backend(random)
    const batch = randomBatch(random)
    const transport: Pick<Transport, 'send' | 'diagnose'> & { readonly traits: object } = {
      traits: { limits: { sendBatch: 3 } },
      diagnose: () => away,
      send: (_, some) => inKeyOrder(some, send, () => away),
    }
    const outcomes = await sendInParts(transport as Transport, 'q', batch, signal)
    assertInOrder(batch, kept, outcomes, seed)
  }
})

test('keys once each, and messages without a key, are one call; a key twice is two', async () => {
  const calls: (readonly string[])[] = []
  const send = async (some: readonly Envelope[]): Promise<readonly Sent[]> => {
    calls.push(idsOf(some))
    return some.map(({ id }) => stored(id))
  }
  await inKeyOrder(batchOf('A1', '-1', 'B1', '-2'), send, () => away)
  await inKeyOrder(batchOf('A1', 'A2', '-1', 'B1', '-2'), send, () => away)
  assert.deepEqual(calls, [['A1', '-1', 'B1', '-2'], ['A1', '-1', 'B1', '-2'], ['A2']])
})

test('what was not tried says that nothing was stored, and that it may be sent again', async () => {
  const send = async (some: readonly Envelope[]): Promise<readonly Sent[]> =>
    some.map(() => ({ ok: false, fault: { ...away, code: 'unknown' } }))
  const [first, second] = await inKeyOrder(batchOf('A1', 'A2'), send, () => away)
  assert.deepEqual(first?.ok === false && first.fault.outcome, 'unknown')
  assert.deepEqual(second, {
    ok: false,
    fault: { code: 'unknown', retryable: true, outcome: 'notApplied' },
  })
})
