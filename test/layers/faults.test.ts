import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acked, died, present } from '../../src/conformance/acts.ts'
import { type Scope, withScope } from '../../src/conformance/scope.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { seededRandom } from '../../src/testing/seeded-random.ts'
import type { Subscription } from '../../src/transport/transport.ts'
import { byDepth } from '../depth.ts'
import { nothingIsLost } from './nothing-lost.ts'
import { type Troubled, troubled } from './troubled.ts'

const MESSAGES = byDepth({ full: 150, long: 2_000 })
const SEEDS = byDepth({ quick: 2, full: 5, long: 40 })
/** A second test needs more trouble, because it has fewer calls. */
const SOME = { receives: 0.03, others: 0.03 }
const MUCH = { receives: 0.06, others: 0.06 }
/** Far more turns than any seed needed (about 150): what is still missing then is lost. */
const TURNS_MAX = 2_000

for (const subject of troubled) {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const title = `on ${subject.name} (seed ${seed})`
    test(`whatever fails between the layers, nothing is lost ${title}`, () =>
      nothingIsLost(subject.harness(seed, SOME), seed, MESSAGES))
    test(`whatever fails between the layers, every dead letter is kept and comes back ${title}`, () =>
      everyLetterComesBack(subject, seed))
  }
}

async function everyLetterComesBack(subject: Troubled, seed: number): Promise<void> {
  const harness = subject.harness(seed, MUCH)
  const options = { harness, random: seededRandom(`kit ${seed}`), depth: 'quick' } as const
  await withScope(options, async (scope) => {
    const queue = await scope.queue()
    const ids = await sendAll(scope, queue)
    const missing = (seen: ReadonlySet<string>): number => ids.filter((id) => !seen.has(id)).length
    const shelved = async (): Promise<ReadonlySet<string>> => {
      const page = await present(scope.far.shelf).list(queue, { limit: 1_000 })
      return new Set(page.items.map(({ envelope }) => envelope.id))
    }
    const consumer = consumerOf(scope, queue)
    let turns = 0
    while (missing(await shelved()) > 0) {
      assert.ok(turns++ < TURNS_MAX, `${missing(await shelved())} messages never died`)
      await consumer.settle((await consumer.some()).map((delivery) => died(delivery)))
    }
    const back = new Set<string>()
    turns = 0
    while (missing(back) > 0) {
      assert.ok(turns++ < TURNS_MAX, `${missing(back)} dead letters never came back`)
      const waiting = [...(await shelved())]
      const audit = { actor: 'a', reason: 'r' }
      await tried(scope, present(scope.far.shelf).redrive(queue, waiting, audit))
      const batch = await consumer.some()
      for (const { envelope, history } of batch) if (history.redrives > 0) back.add(envelope.id)
      await consumer.settle(batch.map((delivery) => acked(delivery)))
    }
  })
  await harness.dispose()
}

/** Time must go by while a call is slow; undefined when it failed. */
function tried<T>(scope: Scope, call: Promise<T>): Promise<T | undefined> {
  return scope.settles(
    'a call',
    call.catch(() => undefined),
    60_000,
  )
}

/** @returns their ids */
async function sendAll(scope: Scope, queue: string): Promise<readonly string[]> {
  const { near, never, traits } = scope
  const sent = Array.from({ length: 40 }, (_, i) =>
    scope.message({ ...keyed(`k${i}`), priority: i % traits.priorities }),
  )
  for (let left = sent; left.length > 0; ) {
    const [first, ...rest] = left
    const outcomes = first && (await tried(scope, near.send(queue, [first], { signal: never })))
    if (outcomes?.[0]?.ok) left = rest
  }
  return sent.map(({ id }) => id)
}

interface Consumer {
  some(): Promise<readonly Delivery[]>
  settle(batch: Parameters<Subscription['settle']>[0]): Promise<void>
}

function consumerOf(scope: Scope, queue: string): Consumer {
  let opened: Subscription | undefined
  const open = async (): Promise<Subscription> =>
    (opened ??= await scope.subscribeShortly(scope.near, queue))
  return {
    async some() {
      await scope.passes(20)
      const receiving = (await open()).receive({ max: 8, waitMs: 50, signal: scope.never })
      const came = await tried(scope, receiving)
      if (came !== undefined) return came
      // What it may have taken comes back with no lease: only when the subscription closes.
      if (scope.traits.claim.kind !== 'lease') await close()
      return []
    },
    async settle(batch) {
      await tried(scope, (await open()).settle(batch))
    },
  }

  async function close(): Promise<void> {
    await opened?.close()
    opened = undefined
  }
}

function keyed(key: string): Partial<Envelope> {
  return { remember: [{ kind: 'idempotency', key, fingerprint: 'f', windowMs: 3_600_000 }] }
}
