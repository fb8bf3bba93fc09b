import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue, silentLogger, TransientError } from 'millrace'
import { memory } from 'millrace/memory'
import { memoryStore, type StoreConnector } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { z } from 'zod'
import { closeNow } from '../runtime/stage.ts'
import { connectStore } from '../stores/store-harness.ts'

const calls = defineQueue({
  name: 'calls',
  owner: 'team-flow',
  payload: z.string(),
  retry: { attempts: 3, baseMs: 1_000, maxMs: 60_000 },
  rateLimit: { perSecond: 1_000 },
  downstream: () => 'sick',
  breaker: { minimum: 1 },
})

/** One worker whose store may keep it waiting for a token. */
async function scene() {
  const clock = virtualClock()
  const kept = memoryStore()
  let gate: PromiseWithResolvers<void> | undefined
  let waiting = 0
  const store: StoreConnector = {
    ...kept,
    connect: async (context) => {
      const found = await kept.connect(context)
      const take: typeof found.buckets.take = async (...given) => {
        waiting++
        await gate?.promise
        waiting--
        return found.buckets.take(...given)
      }
      return { ...found, buckets: { take } }
    },
  }
  const world = { ran: 0, fails: false }
  const [transport, logger] = [memory(), silentLogger]
  const app = await createMillrace({ transport, store, queues: [calls], clock, logger })
  app.work(calls, () => {
    world.ran++
    if (world.fails) throw new TransientError('503')
  })
  await app.start()
  const hold = (): (() => void) => {
    gate = Promise.withResolvers()
    return gate.resolve
  }
  return { app, clock, kept, world, hold, waiting: () => waiting }
}

test('A message whose lease was lost while its worker waited for the store does not run.', async () => {
  const { app, clock, world, hold, waiting } = await scene()
  const letGo = hold()
  const { id } = await app.send(calls, 'one')
  await clock.advance(1_000)
  assert.equal(waiting(), 1)
  assert.equal(await app.admin.messages.cancel(calls, id), true)
  await clock.advance(30_000)
  letGo()
  await clock.advance(1_000)
  assert.equal(world.ran, 0)
  await closeNow(app, clock)
})

test('A worker that stops before its probe began gives the right to probe to others at once.', async () => {
  const { app, clock, kept, world, hold, waiting } = await scene()
  const seen = await connectStore(kept, clock)
  world.fails = true
  await app.send(calls, 'one')
  await clock.advance(1_000)
  assert.equal(world.ran, 1)
  const letGo = hold()
  for (let beat = 0; beat < 120 && waiting() === 0; beat++) await clock.advance(500)
  assert.equal(waiting(), 1)
  assert.equal(await seen.leases.acquire('flow:probe:calls:sick', 'other', 1_000), undefined)
  const closing = app.close({ timeoutMs: 60_000 })
  await clock.advance(1_000)
  letGo()
  await clock.advance(1_000)
  assert.ok(await seen.leases.acquire('flow:probe:calls:sick', 'other', 1_000))
  assert.equal(world.ran, 1)
  await clock.advance(60_000)
  await closing
  await seen.close()
})
