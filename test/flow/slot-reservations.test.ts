import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { memory } from 'millrace/memory'
import { memoryStore } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import type { SlotFound } from '../../src/flow/slot-asks.ts'
import { slotReservations } from '../../src/flow/slot-reservations.ts'
import { pause } from '../../src/model/clock.ts'
import { mortalProcess } from '../property/mortal-process.ts'
import { closeNow } from '../runtime/stage.ts'

const calls = defineQueue({
  name: 'calls',
  owner: 'team-flow',
  payload: z.object({ id: z.string(), takesMs: z.number() }),
  handlerTimeoutMs: 600_000,
  concurrencyLimit: { max: 1 },
})

type Clock = Parameters<typeof pause>[0]

function shop() {
  const clock = virtualClock()
  const shared = { transport: memory(), store: memoryStore(), queues: [calls] }
  const ran: string[] = []
  /** One message at a time: so it has nothing else in hand while it waits. */
  const worker = async (ownClock: Clock) => {
    const app = await createMillrace({ ...shared, clock: ownClock, logger: silentLogger })
    app.work(
      calls,
      async ({ payload: { id, takesMs } }) => {
        ran.push(id)
        await pause(ownClock, takesMs)
      },
      { concurrency: 1 },
    )
    await app.start()
    return app
  }
  return { clock, worker, ran }
}

/** Longer than a lease. */
const LEASE_ENDS_MS = 40_000

test('a message that waits for a slot is not dead of the workers that died meanwhile, and runs when there is one', async () => {
  const { clock, worker, ran } = shop()
  const holder = await worker(clock)
  await holder.send(calls, { id: 'hold', takesMs: 400_000 })
  await clock.advance(1_000)
  await holder.send(calls, { id: 'x', takesMs: 0 })
  for (let n = 0; n < 6; n += 1) {
    const mortal = mortalProcess(clock)
    await worker(mortal.clock)
    await clock.advance(2_000 + n * 170)
    mortal.kill()
    await clock.advance(LEASE_ENDS_MS)
  }
  assert.deepEqual(ran, ['hold'])
  const last = await worker(clock)
  await clock.advance(400_000)
  assert.deepEqual(ran, ['hold', 'x'])
  const { dead, inFlight, scheduled, depth } = await last.admin.stats(calls)
  assert.deepEqual([dead, inFlight, scheduled, depth], [0, 0, 0, 0])
  await closeNow(last, clock)
  await closeNow(holder, clock)
})

test('one that waits so gets its turn though others wait with their messages in hand', async () => {
  const { clock, worker, ran } = shop()
  const holder = await worker(clock)
  await holder.send(calls, { id: 'hold', takesMs: 60_000 })
  await clock.advance(1_000)
  await holder.send(calls, { id: 'x', takesMs: 0 })
  const mortal = mortalProcess(clock)
  await worker(mortal.clock)
  await clock.advance(2_000)
  mortal.kill()
  await clock.advance(LEASE_ENDS_MS)
  const others = [await worker(clock), await worker(clock)]
  const many = Array.from({ length: 60 }, (_, n) => ({ id: `other ${n}`, takesMs: 5_000 }))
  await holder.sendBatch(calls, many)
  await clock.advance(150_000)
  assert.ok(ran.includes('x'), `${ran}`)
  for (const app of [...others, holder]) await closeNow(app, clock)
})

const slot = { holder: 'h', fence: 1n }

function asking() {
  const clock = virtualClock()
  const answers: ((found: SlotFound) => void)[] = []
  const released: unknown[] = []
  const reservations = slotReservations({
    clock,
    ask: () => new Promise((resolve) => answers.push(resolve)),
    release: (one) => void released.push(one),
  })
  const grant = async (found: SlotFound): Promise<void> => {
    answers.shift()?.(found)
    await clock.advance(0)
  }
  return { clock, reservations, answers, released, grant }
}

const held: SlotFound = { as: 'held', slot, askedAt: 0 }

test('a slot that is there at once is given at once', async () => {
  const { reservations, grant, released, clock } = asking()
  const found = reservations.ask('x', undefined)
  await grant(held)
  assert.deepEqual(await found, held)
  await clock.advance(10_000)
  assert.deepEqual(released, [])
})

test('one that comes later waits for its message, is asked for once, and goes to others when the message does not come', async () => {
  const { clock, reservations, answers, grant, released } = asking()
  const first = reservations.ask('x', undefined)
  await clock.advance(250)
  assert.equal(await first, undefined)
  assert.equal(await reservations.ask('x', undefined), undefined)
  assert.equal(answers.length, 1)
  await grant(held)
  await clock.advance(2_900)
  assert.deepEqual(await reservations.ask('x', undefined), held)
  await clock.advance(1_000)
  assert.deepEqual(released, [])

  const second = reservations.ask('y', undefined)
  await clock.advance(250)
  await second
  await grant(held)
  await clock.advance(3_000)
  assert.deepEqual(released, [slot])
})

test('what is refused is forgotten, and a stop gives back what is held and what comes later', async () => {
  const { clock, reservations, answers, grant, released } = asking()
  const asks = async (id: string): Promise<void> => {
    const found = reservations.ask(id, undefined)
    await clock.advance(250)
    await found
  }
  await asks('x')
  await grant({ as: 'full', of: 'pool' })
  await asks('x')
  assert.equal(answers.length, 1, 'it is asked for anew')
  await grant(held)
  await asks('y')
  reservations.stop()
  assert.deepEqual(released, [slot])
  await grant(held)
  assert.deepEqual(released, [slot, slot])
  assert.equal(await reservations.ask('z', undefined), undefined)
  assert.equal(answers.length, 0)
})
