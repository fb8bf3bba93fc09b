import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Outbox, RelayFailure, RelayPass } from 'millrace/outbox'
import { virtualClock } from 'millrace/testing'
import type { Fault } from '../../src/model/fault.ts'
import type { Logger } from '../../src/model/logger.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { isAlarming, relayGapMs } from '../../src/outbox/backoff.ts'
import { handOver } from '../../src/outbox/handover.ts'
import type { OutboxRow } from '../../src/outbox/outbox.ts'
import { startRelay } from '../../src/outbox/relay.ts'

const idle: RelayPass = { taken: 0, published: 0, failed: [] }
const busy: RelayPass = { taken: 200, published: 200, failed: [] }

interface Stage {
  readonly outbox: Outbox
  /** When each pass began, in ms since the start. */
  readonly passes: number[]
  readonly told: string[]
  readonly logger: Logger
  added(): void
}

function stage(now: () => number, pass: (n: number) => Promise<RelayPass>): Stage {
  const startedAt = now()
  const passes: number[] = []
  const told: string[] = []
  let listener = (): void => undefined
  return {
    passes,
    told,
    added: () => listener(),
    logger: {
      ...silentLogger,
      warn: (message) => void told.push(`warn ${message}`),
      error: (message) => void told.push(`error ${message}`),
    },
    outbox: {
      name: 'fake',
      databaseId: 'fake',
      transaction: () => undefined,
      relay: () => {
        passes.push(now() - startedAt)
        return pass(passes.length)
      },
      onAdded: (given) => {
        listener = given
        return () => {
          listener = () => undefined
        }
      },
      lag: async () => ({ rows: 0, ageMs: 0 }),
      close: async () => undefined,
    },
  }
}

const publish = async (): Promise<[]> => []
const half = (): number => 0.5

test('an empty outbox is looked into every 200 ms, a full one at once', async () => {
  const clock = virtualClock()
  const { outbox, passes, logger } = stage(clock.now, async (n) =>
    n === 2 || n === 3 ? busy : idle,
  )
  const relay = startRelay({ outbox, publish, clock, random: half, logger })
  await clock.advance(700)
  assert.deepEqual(passes, [0, 200, 200, 200, 400, 600])
  assert.equal(clock.now() - relay.lastPassAt, 100)
  await relay.close()
  await clock.advance(10_000)
  assert.equal(passes.length, 6)
})

test('rows that were just added are not left until the next poll', async () => {
  const clock = virtualClock()
  const { outbox, passes, logger, added } = stage(clock.now, async () => idle)
  const relay = startRelay({ outbox, publish, clock, random: half, logger })
  await clock.advance(50)
  added()
  await clock.advance(0)
  relay.poke()
  await clock.advance(0)
  assert.deepEqual(passes, [0, 50, 50])
  await relay.close()
  added()
  await clock.advance(1_000)
  assert.equal(passes.length, 3)
})

test('rows that were added during a pass are looked for right after it', async () => {
  const clock = virtualClock()
  const inHand = Promise.withResolvers<RelayPass>()
  const { outbox, passes, logger, added } = stage(clock.now, async (n) =>
    n === 1 ? inHand.promise : idle,
  )
  const relay = startRelay({ outbox, publish, clock, random: half, logger })
  await clock.advance(1_000)
  added()
  inHand.resolve(idle)
  await clock.advance(0)
  assert.deepEqual(passes, [0, 1_000])
  await relay.close()
})

test('a database that fails is asked after growing pauses, loudly, and never given up', async () => {
  const clock = virtualClock()
  let failing = true
  const { outbox, passes, logger, told, added } = stage(clock.now, async () => {
    if (failing) throw new Error('away')
    return idle
  })
  const startedAt = clock.now()
  const relay = startRelay({ outbox, publish, clock, random: half, logger })
  await clock.advance(10_000)
  added()
  await clock.advance(0)
  const gaps = passes.slice(1).map((at, n) => at - (passes[n] ?? 0))
  assert.deepEqual(gaps, [400, 800, 1_600, 3_200])
  assert.equal(relay.lastPassAt, startedAt)
  await clock.advance(600_000)
  assert.deepEqual(
    told.map((line) => line.replace(/:.*table/, '')),
    [
      'warn outbox fake; it tries again',
      'error outbox fake, 11 times in a row; it goes on trying',
      'error outbox fake, 21 times in a row; it goes on trying',
    ],
  )
  failing = false
  await clock.advance(30_000)
  assert.ok(clock.now() - relay.lastPassAt <= 200)
  // All is as it was: what is added is not left until the next poll.
  await clock.advance(50)
  const before = passes.length
  added()
  await clock.advance(0)
  assert.equal(passes.length, before + 1)
  await relay.close()
})

test('close waits for the pass in hand, but not for ever', async () => {
  const clock = virtualClock()
  const inHand = Promise.withResolvers<RelayPass>()
  const { outbox, logger } = stage(clock.now, () => inHand.promise)
  const relay = startRelay({ outbox, publish, clock, random: half, logger })
  let closed = false
  const closing = relay.close().then(() => {
    closed = true
  })
  await clock.advance(1_000)
  assert.equal(closed, false)
  inHand.resolve(busy)
  await closing
  const again = relay.close()
  assert.equal(relay.close(), again)

  const never = stage(clock.now, () => new Promise(() => {}))
  const stuck = startRelay({ outbox: never.outbox, publish, clock, random: half, logger })
  const ended = stuck.close()
  await clock.advance(5_000)
  await ended
})

test('a row that nobody takes is an alarm after ten tries, once per doubling; a refused one at once', async () => {
  const clock = virtualClock()
  const failure = (tries: number, retryable: boolean): RelayFailure => {
    const fault: Fault = {
      code: retryable ? 'unavailable' : 'conflict',
      retryable,
      outcome: 'notApplied',
    }
    return { queue: 'orders', messageId: `m-${tries}`, tries, retryInMs: 1, fault }
  }
  const failed = Array.from({ length: 50 }, (_, n) => failure(n + 1, true))
  const { outbox, logger, told } = stage(clock.now, async (n) =>
    n === 1 ? { ...idle, failed: [...failed, failure(1, false), failure(2, false)] } : idle,
  )
  const relay = startRelay({ outbox, publish, clock, random: half, logger })
  await clock.advance(0)
  await relay.close()
  const alarms = told.map((line) => /message (m-\d+) .*\((\w+)\)/.exec(line)?.slice(1).join(' '))
  assert.deepEqual(alarms, [
    'm-11 unavailable',
    'm-21 unavailable',
    'm-41 unavailable',
    'm-1 conflict',
  ])
})

test('gaps grow until the longest, whatever the jitter', () => {
  for (let k = 1; k < 10; k++) {
    assert.ok(relayGapMs(k + 1, () => 0.999_999) > relayGapMs(k, () => 0), `after ${k}`)
  }
  assert.equal(
    relayGapMs(1, () => 0),
    500,
  )
  assert.equal(
    relayGapMs(1_000_000, () => 0),
    300_000,
  )
  assert.deepEqual([1, 10, 11, 12, 21, 31, 41, 81].filter(isAlarming), [11, 21, 41, 81])
})

test('rows of one key leave one after another, all keys side by side', async () => {
  const row = (id: string, orderingKey?: string, queue = 'q'): OutboxRow => ({
    queue,
    tries: 0,
    envelope: {
      id,
      body: new Uint8Array(),
      headers: {},
      priority: 0,
      ...(orderingKey === undefined ? {} : { orderingKey }),
    },
  })
  const rows = [
    row('a1', 'a'),
    row('a2', 'a'),
    row('x'),
    row('b1', 'b'),
    row('a3', 'a'),
    row('b2', 'b'),
    row('c1', 'a', 'r'),
  ]
  const steps: string[][] = []
  const outcome = await handOver(rows, async (batch) => {
    steps.push(batch.map(({ envelope: { id } }) => id))
    return batch.map(({ envelope: { id } }) =>
      id === 'a2'
        ? { ok: false, fault: { code: 'full', retryable: true, outcome: 'notApplied' } }
        : { ok: true, id, duplicate: false },
    )
  })
  assert.deepEqual(steps, [
    ['a1', 'x', 'b1', 'c1'],
    ['a2', 'b2'],
  ])
  const ids = (some: readonly OutboxRow[]): readonly string[] =>
    some.map(({ envelope: { id } }) => id)
  assert.deepEqual(ids(outcome.confirmed), ['a1', 'x', 'b1', 'c1', 'b2'])
  assert.deepEqual(ids(outcome.failed.map((one) => one.row)), ['a2'])
  assert.deepEqual(ids(outcome.untouched), ['a3'])
})
