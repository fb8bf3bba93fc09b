import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineQueue } from 'millrace'
import { memory } from 'millrace/memory'
import { z } from 'zod'
import { pause } from '../../src/model/clock.ts'
import { lost } from '../../src/transport/outcomes.ts'
import { aroundSettlements } from '../faults/mortal.ts'
import { closeNow, stage } from './stage.ts'

const orders = (count: number): readonly { readonly orderId: string }[] =>
  Array.from({ length: count }, (_, i) => ({ orderId: String(i) }))

test('a slot is free while its last message is still settled, and what is being settled is bounded', async () => {
  const answers = Promise.withResolvers<void>()
  const slow = aroundSettlements(memory(), async (batch, settle) => {
    await answers.promise
    return settle(batch)
  })
  const { app, clock, queue } = await stage({ app: { transport: slow } })
  let began = 0
  app.work(queue, () => void began++, { concurrency: 3 })
  await app.sendBatch(queue, orders(20))
  await app.start()
  await clock.advance(1_000)
  assert.equal(began, 6)
  answers.resolve()
  await clock.advance(1_000)
  assert.equal(began, 20)
  await closeNow(app, clock)
})

test('a close waits for settlements as for handlers, while there is time', async () => {
  const { app, clock, queue } = await slowStage(10_000)
  app.work(queue, () => undefined)
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(1_000)
  const closed = app.close({ timeoutMs: 30_000 })
  await clock.advance(20_000)
  await closed
  assert.equal(app.counters().orders?.acked, 1)
})

test('an ack that is on its way when the time of a close is over still counts', async () => {
  const { app, clock, queue, open } = await slowStage(1_000)
  app.work(queue, () => undefined)
  await app.send(queue, { orderId: 'a' })
  await app.start()
  await clock.advance(900)
  const closed = app.close({ timeoutMs: 50 })
  await clock.advance(1_000)
  await closed
  assert.equal(app.counters().orders?.acked, 1)
  const other = await open()
  assert.equal((await other.admin.stats(queue)).depth, 0)
  await closeNow(other, clock)
})

test('what ends without a run is held for as long as it is being settled', async () => {
  const answers = Promise.withResolvers<void>()
  const store = memory()
  const { app, clock, queue, open } = await stage({ transport: store })
  await app.send(queue, { orderId: 'a' })
  const payload = z.object({ orderId: z.string().min(5) })
  const strict = defineQueue({ name: queue.name, owner: queue.owner, payload })
  const slow = aroundSettlements(store, async (batch, settle) => {
    await answers.promise
    return settle(batch)
  })
  const judge = await open({ transport: slow, queues: [strict] })
  judge.work(strict, () => assert.fail('it does not fit'))
  await judge.start()
  await clock.advance(1_000)
  let runs = 0
  app.work(queue, () => void runs++)
  await app.start()
  await clock.advance(120_000)
  answers.resolve()
  await clock.advance(1_000)
  assert.deepEqual([runs, (await app.admin.stats(queue)).dead], [0, 1])
  await closeNow(judge, clock)
  await closeNow(app, clock)
})

test('what is no longer ours when it is to be settled is counted, and said', async () => {
  const taken = aroundSettlements(memory(), async (batch) => batch.map(() => lost))
  const { app, clock, queue, lines } = await stage({ app: { transport: taken } })
  app.work(queue, () => undefined)
  await app.send(queue, { orderId: 'a' }, { id: 'mine' })
  await app.start()
  await clock.advance(100)
  const { acked, lost: gone } = app.counters().orders ?? {}
  assert.deepEqual([acked, gone], [0, 1])
  const said = lines.filter(({ level }) => level === 'warn').map(({ message }) => message)
  assert.match(said.join(), /message mine was no longer ours when it was to be acked/)
  await closeNow(app, clock)
})

test('handlers that never end are so many at most: then no more begin, until some have ended', async () => {
  const { app, clock, queue } = await stage({
    queue: { handlerTimeoutMs: 100, retry: { attempts: 1 } },
  })
  const ends: (() => void)[] = []
  app.work(queue, () => new Promise<void>((resolve) => void ends.push(resolve)), {
    concurrency: 100,
  })
  await app.sendBatch(queue, orders(1_500))
  await app.start()
  await clock.advance(120_000)
  const most = ends.length
  assert.ok(most >= 1_000 && most <= 1_200, String(most))
  for (const end of ends) end()
  await clock.advance(10_000)
  assert.ok(ends.length > most)
  await closeNow(app, clock)
})

/** Each batch of settlements takes so long. */
async function slowStage(settleMs: number) {
  const staged = await stage({
    app: {
      transport: aroundSettlements(memory(), async (batch, settle) => {
        await pause(staged.clock, settleMs)
        return settle(batch)
      }),
    },
  })
  return staged
}
