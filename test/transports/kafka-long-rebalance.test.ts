import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { kafka } from 'millrace/kafka'
import { type Clock, systemClock } from '../../src/model/clock.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Subscription, Transport } from '../../src/transport/transport.ts'
import type { KafkaSettings } from '../../src/transports/kafka/options.ts'
import { backendUrl } from '../backends.ts'
import { quick } from './kafka-harness.ts'
import { until } from './until.ts'

const brokers = backendUrl('kafka')
const { signal } = new AbortController()
const prefix = `rebalance-${Date.now().toString(36)}-`

/** A clock whose timers can be stopped for good: who lives by it falls silent, without a word. */
function stoppable(): { readonly clock: Clock; stop(): void } {
  const real = systemClock()
  let isStopped = false
  const after: Clock['after'] = (ms, run) => real.after(ms, () => void (isStopped || run()))
  return {
    clock: { now: real.now, after },
    stop() {
      isStopped = true
    },
  }
}

async function open(
  t: TestContext,
  settings: KafkaSettings,
  clock: Clock = systemClock(),
): Promise<Transport> {
  const list = (brokers ?? '').split(',')
  const connector = kafka({ brokers: list, prefix, partitions: 3, ...settings })
  const context = { signal, clock, random: Math.random, logger: silentLogger }
  const transport = await connector.connect({ ...context, migrate: 'auto' })
  t.after(() => transport.close())
  return transport
}

function subscribe(transport: Transport): Promise<Subscription> {
  return transport.subscribe('slow', { group: 'g', leaseMs: 1_000, maxInFlight: 10 })
}

if (brokers !== undefined)
  test('While a group waits longer than a session for a member that says nothing, the others keep what they have.', async (t) => {
    const revokeDrainMs = 1_000
    const first = await open(t, { ...quick, revokeDrainMs })
    await first.topology.ensure([{ name: 'slow', owner: 'o', maxDepth: undefined }], signal)
    const silent = stoppable()
    const mute = await open(
      t,
      { sessionTimeoutMs: 60_000, heartbeatMs: 100, revokeDrainMs },
      silent.clock,
    )
    const muteSubscription = await subscribe(mute)
    const own = await subscribe(first)
    // Both have a share before the third one comes.
    const held: Delivery[] = []
    let muteHas = false
    await until('both have something', async () => {
      await send(first)
      held.push(...(await own.receive({ max: 10, waitMs: 50, signal })))
      muteHas ||= (await muteSubscription.receive({ max: 10, waitMs: 50, signal })).length > 0
      return muteHas && held.some(({ claim }) => !claim.ending.aborted)
    })
    silent.stop()
    const kept = held.filter(({ claim }) => !claim.ending.aborted)
    const third = await open(t, { ...quick, revokeDrainMs })
    const askedAt = Date.now()
    const added = await subscribe(third)
    const over: boolean[] = []
    await until(
      'the group goes on without the silent one',
      async () => {
        over.push(...kept.map(({ claim }) => claim.isOver?.() === true))
        await send(first)
        return (await added.receive({ max: 10, waitMs: 50, signal })).length > 0
      },
      60_000,
    )
    const tookMs = Date.now() - askedAt
    assert.ok(tookMs > 2 * quick.sessionTimeoutMs, `it took ${tookMs} ms only`)
    assert.equal(over.includes(true), false)
  })

async function send(transport: Transport): Promise<void> {
  const envelopes = Array.from({ length: 6 }, (_, n) => ({
    ...{ id: `m-${Date.now()}-${n}`, body: Buffer.from('x'), headers: {}, priority: 0 },
    orderingKey: `key-${n}`,
  }))
  const outcomes = await transport.send('slow', envelopes, { signal })
  assert.ok(outcomes.every(({ ok }) => ok))
}
