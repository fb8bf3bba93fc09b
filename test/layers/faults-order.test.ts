import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acked, released } from '../../src/conformance/acts.ts'
import { type Scope, withScope } from '../../src/conformance/scope.ts'
import type { Delivery, Settlement } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { seededRandom } from '../../src/testing/seeded-random.ts'
import type { Subscription } from '../../src/transport/transport.ts'
import { byDepth } from '../depth.ts'
import { type Troubled, troubled } from './troubled.ts'

const SEEDS = byDepth({ quick: 2, full: 5, long: 40 })
/** Up to nine troubles stand above each other: with more of them, hardly a receive would come through. */
const RATES = { receives: 0.005, others: 0.05 }
const KEYS = 3
const EACH = 60
/** Far more than any seed needed. */
const TURNS_MAX = 3_000

for (const subject of troubled.filter(({ keepsOrder }) => keepsOrder)) {
  for (let seed = 1; seed <= SEEDS; seed++) {
    test(`whatever fails between the layers, nothing overtakes another one of its key on ${subject.name} (seed ${seed})`, () =>
      nothingOvertakes(subject, seed))
  }
}

async function nothingOvertakes(subject: Troubled, seed: number): Promise<void> {
  const harness = subject.harness(seed, RATES)
  const options = { harness, random: seededRandom(`order ${seed}`), depth: 'quick' } as const
  await withScope(options, async (scope) => {
    const queue = await scope.queue()
    const waiting = await sendInOrder(scope, queue)
    let subscription: Subscription | undefined
    /** What was not told to have ended is settled again only after the next look: that one must not see what is behind it. */
    let again: readonly Settlement[] = []
    for (let turns = 0; waiting.size > 0; turns++) {
      assert.ok(turns < TURNS_MAX, `${waiting.size} messages never came`)
      await scope.passes(20)
      subscription ??= await scope.subscribeShortly(scope.near, queue)
      const came = await tried(
        scope,
        subscription.receive({ max: 8, waitMs: 50, signal: scope.never }),
      )
      for (const delivery of came ?? []) assertFirst(delivery, waiting)
      const acts = [...again, ...(came ?? []).map((delivery) => choose(scope, delivery))]
      again = await settled(scope, subscription, acts, waiting)
      if (came !== undefined) continue
      // What it may have taken comes back at once when the subscription closes.
      await subscription.close()
      subscription = undefined
      again = []
    }
  })
  await harness.dispose()
}

/** Of each key, one after the other: the next is sent when the one before was told to be stored. */
async function sendInOrder(scope: Scope, queue: string): Promise<Map<string, Envelope>> {
  const all = Array.from({ length: KEYS * EACH }, (_, i) =>
    scope.message({ orderingKey: `key-${i % KEYS}` }),
  )
  for (const one of all) {
    for (;;) {
      const sent = await tried(scope, scope.near.send(queue, [one], { signal: scope.never }))
      if (sent?.[0]?.ok) break
    }
  }
  return new Map(all.map((one) => [one.id, one]))
}

/** @param waiting what certainly was not acked, in the order of the sends */
function assertFirst({ envelope }: Delivery, waiting: ReadonlyMap<string, Envelope>): void {
  const first = [...waiting.values()].find(
    ({ orderingKey }) => orderingKey === envelope.orderingKey,
  )
  const isAgain = !waiting.has(envelope.id)
  assert.ok(isAgain || first?.id === envelope.id, `${envelope.id} came before ${first?.id}`)
}

function choose({ random }: Scope, delivery: Delivery): Settlement {
  if (random() < 0.7) return acked(delivery)
  return released(delivery, { counted: random() < 0.5, delayMs: random() < 0.5 ? 60 : 0 })
}

/** @returns what to settle once more */
async function settled(
  scope: Scope,
  from: Subscription,
  acts: readonly Settlement[],
  waiting: Map<string, Envelope>,
): Promise<readonly Settlement[]> {
  if (acts.length === 0) return []
  const settling = from.settle(acts).catch((error: unknown) => {
    const fault = scope.near.diagnose(error)
    return acts.map(() => ({ ok: false, fault }) as const)
  })
  const outcomes = await scope.settles('a settlement', settling, 60_000)
  return acts.filter(({ as, delivery }, i) => {
    const outcome = outcomes[i]
    const mayBeDone = outcome?.ok || outcome?.fault.outcome !== 'notApplied'
    if (as === 'acked' && mayBeDone) waiting.delete(delivery.envelope.id)
    return outcome?.ok === false && outcome.fault.retryable
  })
}

/** Time must go by while a call is slow; undefined when it failed. */
function tried<T>(scope: Scope, call: Promise<T>): Promise<T | undefined> {
  return scope.settles(
    'a call',
    call.catch(() => undefined),
    60_000,
  )
}
