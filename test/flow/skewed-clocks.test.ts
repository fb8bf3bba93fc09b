import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue, silentLogger, ThrottledError, TransientError } from 'millrace'
import { memory } from 'millrace/memory'
import { memoryStore, type StoreConnector } from 'millrace/store'
import { type VirtualClock, virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { closeNow } from '../runtime/stage.ts'

const DAY_MS = 86_400_000
const calls = defineQueue({
  ...{ name: 'calls', owner: 'team-flow', payload: z.number() },
  downstream: () => 'api',
})

/** A machine of its own, whose clock is off; the store goes by the clock of its server. */
async function machine(clock: VirtualClock, server: StoreConnector, aheadMs: number) {
  const own = { now: () => clock.now() + aheadMs, after: clock.after }
  const store: StoreConnector = {
    name: server.name,
    connect: (context) => server.connect({ ...context, clock }),
  }
  const world = { throws: undefined as unknown, ran: [] as number[] }
  const app = await createMillrace({
    ...{ transport: memory(), store, queues: [calls], clock: own, logger: silentLogger },
    random: () => 0.5,
  })
  app.work(calls, () => {
    world.ran.push(clock.now())
    if (world.throws !== undefined) throw world.throws
  })
  await app.start()
  const send = (many: number) => app.sendBatch(calls, Array<number>(many).fill(1))
  return { app, world, send }
}

for (const [what, sick] of [
  ['A breaker that opened', () => new TransientError('503')],
  ['A pause that was asked for', () => new ThrottledError('later', { retryAfterMs: 10_000 })],
] as const) {
  test(`${what} on a machine whose clock is a day ahead keeps the others out no longer than their own would.`, async () => {
    const clock = virtualClock()
    const server = memoryStore()
    const [fast, right] = [await machine(clock, server, DAY_MS), await machine(clock, server, 0)]
    fast.world.throws = sick()
    await fast.send(20)
    await clock.advance(3_000)
    const [seen] = await right.app.admin.breakers.list(calls)
    assert.ok(seen?.phase === 'open' || seen?.pausedUntil !== undefined, JSON.stringify(seen))
    await closeNow(fast.app, clock)
    const from = clock.now()
    await right.send(1)
    await clock.advance(5_000)
    assert.equal(right.world.ran.length, 0, 'it is kept out at first')
    await clock.advance(60_000)
    assert.equal(right.world.ran.length, 1, 'and goes when the time is over')
    assert.ok((right.world.ran[0] ?? 0) >= from + 5_000)
    await closeNow(right.app, clock)
  })
}
