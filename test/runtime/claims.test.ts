import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue } from 'millrace'
import { memory } from 'millrace/memory'
import { memoryInbox, virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { pause } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Connector, Subscription, Transport } from '../../src/transport/transport.ts'
import { closeNow, stage } from './stage.ts'

const HOUR_MS = 3_600_000

/** A broker whose deliveries are ours for as long as the session lives: no lease, nothing to renew. */
function sessionBroker(): Connector {
  const below = memory()
  const held = (inner: Subscription): Subscription => {
    const { renew: _, ...rest } = inner
    return rest
  }
  return {
    name: 'session',
    connect: async (context): Promise<Transport> => {
      const inner = await below.connect(context)
      return {
        ...inner,
        traits: { ...inner.traits, claim: { kind: 'session' } },
        subscribe: async (queue, options) =>
          held(await inner.subscribe(queue, { ...options, leaseMs: HOUR_MS })),
      }
    },
  }
}

test('a handler may run for as long as it is allowed where nothing is leased', async () => {
  const clock = virtualClock()
  const queue = defineQueue({
    name: 'slow',
    owner: 'team-a',
    payload: z.string(),
    handlerTimeoutMs: 600_000,
  })
  const app = await createMillrace({
    transport: sessionBroker(),
    queues: [queue],
    clock,
    logger: silentLogger,
  })
  let aborted = false
  app.work(queue, async (_message, ctx) => {
    ctx.signal.addEventListener('abort', () => {
      aborted = true
    })
    await pause(clock, 300_000)
  })
  await app.send(queue, 'a')
  await app.start()
  await clock.advance(301_000)
  const { acked, started } = app.counters()['slow'] ?? {}
  assert.deepEqual({ aborted, acked, started }, { aborted: false, acked: 1, started: 1 })
  await closeNow(app, clock)
})

test('a process that was stopped past its lease commits nothing in another database, before any timer has told it', async () => {
  let stoppedMs = 0
  const elsewhere = memory()
  const clock = virtualClock()
  // What `now` says after SIGCONT; the timers have not run yet.
  const jumping = { now: () => clock.now() + stoppedMs, after: clock.after }
  const { app, queue } = await stage({
    app: { clock: jumping, inbox: memoryInbox({ transport: elsewhere }) },
  })
  const ends: unknown[] = []
  app.work(queue, async (_message, ctx) => {
    const committed = ctx.tx(() => {
      stoppedMs = 40_000
    })
    await committed.then(
      () => ends.push('committed'),
      (error: { readonly code?: string }) => ends.push(error.code),
    )
  })
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(100)
  // The second run of the message, which time has not stopped.
  assert.deepEqual(ends, ['MILLRACE_LEASE_LOST', 'committed'])
  assert.equal(app.counters()['orders']?.acked, 1)
  await closeNow(app, clock)
})
