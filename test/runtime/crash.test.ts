import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type App, createMillrace, type DeadLetterView, silentLogger } from 'millrace'
import { memoryBlobs } from 'millrace/blobs'
import type { Fault } from '../../src/model/fault.ts'
import { aroundSettlements } from '../faults/mortal.ts'
import { mortal } from './mortal.ts'
import { closeNow, orderSchema, stage } from './stage.ts'

test('a crash counts one attempt of class crashed, and what it held runs alone afterwards', async () => {
  const { app: second, clock, queue, store } = await stage()
  const life = mortal(store)
  const first: App = await createMillrace({
    transport: life.connector,
    queues: [queue],
    clock,
    logger: silentLogger,
  })
  first.work(queue, () => new Promise(() => undefined), { concurrency: 3 })
  for (const orderId of ['a', 'b', 'c']) await first.send(queue, { orderId })
  await first.start()
  await clock.advance(100)
  life.kill()
  for (const orderId of ['d', 'e']) await second.send(queue, { orderId })

  let together = 0
  let most = 0
  const attempts = new Map<string, number>()
  const beside = new Map<string, number>()
  second.work(
    queue,
    async (message) => {
      together++
      most = Math.max(most, together)
      attempts.set(message.payload.orderId, message.attempt)
      if (message.attempt > 1) beside.set(message.payload.orderId, together)
      await new Promise<void>((resolve) => clock.after(1_000, resolve))
      together--
    },
    { concurrency: 10 },
  )
  await clock.advance(60_000)
  await second.start()
  await clock.advance(60_000)
  assert.deepEqual([...attempts].sort(), [
    ['a', 2],
    ['b', 2],
    ['c', 2],
    ['d', 1],
    ['e', 1],
  ])
  assert.deepEqual([...beside.values()], [1, 1, 1], 'each ran alone')
  assert.equal(most, 2, 'd and e ran side by side')
  await closeNow(second, clock)
})

test('three crashes make a message dead with class crashed, without a fourth run', async () => {
  const { app: observer, clock, queue, store } = await stage()
  const { id } = await observer.send(queue, { orderId: 'poison' })
  await observer.send(queue, { orderId: 'harmless' })
  const starts: number[] = []
  const told: DeadLetterView[] = []
  let harmless = 0
  for (let life = 0; life < 5; life++) {
    const one = mortal(store)
    const app = await createMillrace({
      transport: one.connector,
      queues: [queue],
      clock,
      logger: silentLogger,
      onDeadLetter: (letter) => void told.push(letter),
    })
    app.work(
      queue,
      (message) => {
        if (message.payload.orderId !== 'poison') return void harmless++
        starts.push(message.attempt)
        one.kill()
        return new Promise(() => undefined)
      },
      { concurrency: 1 },
    )
    await app.start()
    await clock.advance(60_000)
    if (starts.length <= life) await closeNow(app, clock)
  }
  assert.deepEqual(starts, [1, 2, 3])
  assert.equal(harmless, 1)
  const letter = await observer.admin.deadLetters.show(queue, id)
  assert.equal(letter?.errorClass, 'crashed')
  assert.deepEqual(
    letter?.attempts.map((attempt) => attempt.errorClass),
    ['crashed', 'crashed', 'crashed'],
  )
  assert.deepEqual(told, [letter])
  await closeNow(observer, clock)
})

type Stage = Awaited<ReturnType<typeof stage>>

/** A process dies with one message in its hands. */
async function killedWithSuspect(
  { clock, queue, store, open }: Pick<Stage, 'clock' | 'queue' | 'store' | 'open'>,
  orderId = 'suspect',
): Promise<void> {
  const life = mortal(store)
  const doomed = await open({ transport: life.connector, logger: silentLogger })
  doomed.work(queue, () => new Promise(() => undefined), { concurrency: 1 })
  await doomed.send(queue, { orderId })
  await doomed.start()
  await clock.advance(100)
  life.kill()
}

test('while others run, a suspect is given back uncounted: their deaths are not its own', async () => {
  const on = await stage({ queue: { handlerTimeoutMs: 120_000 } })
  const { app: second, clock, queue } = on
  await killedWithSuspect(on)

  const order: string[] = []
  second.work(
    queue,
    async (message) => {
      order.push(`${message.payload.orderId} starts`)
      await new Promise<void>((resolve) => clock.after(60_000, resolve))
      order.push(`${message.payload.orderId} ends`)
    },
    { concurrency: 10 },
  )
  await second.start()
  await second.send(queue, { orderId: 'long' })
  await clock.advance(45_000)
  await clock.advance(120_000)
  assert.deepEqual(order, ['long starts', 'long ends', 'suspect starts', 'suspect ends'])
  const { acked, released } = second.counters().orders ?? {}
  assert.deepEqual(
    [acked, released],
    [2, 1],
    'it comes again when the other has ended, and not before',
  )
  await closeNow(second, clock)
})

/** What a worker does that meets a suspect among others: each run, and each settlement of one as it begins and ends. */
async function besideSuspect(attempts: number): Promise<readonly string[]> {
  const on = await stage({ queue: { handlerTimeoutMs: 60_000, retry: { attempts } } })
  const { clock, queue, store } = on
  await killedWithSuspect(on)

  const order: string[] = []
  const slow = aroundSettlements(store, async (batch, settle) => {
    if (batch.some(({ as }) => as === 'released')) return settle(batch)
    const what = batch.map(({ as, delivery }) => (delivery.alone ? `${as} alone` : as)).join()
    order.push(`${what} begins`)
    await new Promise<void>((resolve) => clock.after(5_000, resolve))
    order.push(`${what} ends`)
    return settle(batch)
  })
  const second = await createMillrace({
    ...{ transport: slow, queues: [queue], clock, logger: silentLogger },
  })
  second.work(queue, async ({ payload }) => void order.push(payload.orderId), { concurrency: 10 })
  await second.start()
  // A settlement is under way whenever the suspect comes back, and there is more to do as soon as it is taken.
  for (let beats = 0; beats < 90; beats++) {
    await second.send(queue, { orderId: 'other' })
    await clock.advance(1_000)
  }
  await closeNow(second, clock)
  return order
}

test('what runs alone has no neighbours until it is settled, and what is being settled is a neighbour', async () => {
  const order = await besideSuspect(8)
  const at = order.indexOf('suspect')
  assert.ok(at > 0 && order.lastIndexOf('other') > at, order.join())
  assert.match(order[at - 1] ?? '', /^acked.* ends$/)
  assert.deepEqual(order.slice(at + 1, at + 3), ['acked alone begins', 'acked alone ends'])
})

test('what must run alone has no neighbours while it is settled without a run', async () => {
  const order = await besideSuspect(1)
  const at = order.indexOf('dead alone begins')
  assert.ok(at > 0 && order.lastIndexOf('other') > at, order.join())
  assert.match(order[at - 1] ?? '', /^acked.* ends$/)
  assert.equal(order[at + 1], 'dead alone ends')
})

const late = orderSchema.refine(async () => true)
const waits = {
  'its schema answers late': { queue: { payload: late } },
  'its body is fetched': { app: { claimCheck: { blobs: memoryBlobs() } } },
}
for (const [what, options] of Object.entries(waits)) {
  test(`what runs alone has no neighbours though ${what}`, async () => {
    const on = await stage(options)
    const { app: second, clock, queue } = on
    const suspect = 'suspect'.padEnd(100_000, '.')
    await killedWithSuspect(on, suspect)

    const order: string[] = []
    second.work(
      queue,
      async ({ payload }) => {
        const name = payload.orderId === suspect ? 'suspect' : payload.orderId
        order.push(`${name} begins`)
        await new Promise<void>((resolve) => clock.after(10_000, resolve))
        order.push(`${name} ends`)
      },
      { concurrency: 10 },
    )
    await second.start()
    while (order.length === 0) await clock.advance(1_000)
    await second.send(queue, { orderId: 'other' })
    await clock.advance(30_000)
    assert.deepEqual(order, ['suspect begins', 'suspect ends', 'other begins', 'other ends'])
    await closeNow(second, clock)
  })
}

test('what ran alone keeps nobody waiting for the open transaction that holds its key', async () => {
  const on = await stage()
  const { clock, queue, open, store } = on
  await killedWithSuspect(on)

  const held: Fault = { code: 'held', retryable: true, outcome: 'notApplied' }
  let isOpen = true
  const second = await open({
    transport: aroundSettlements(store, async (batch, settle) =>
      isOpen && batch.some(({ as, delivery }) => as === 'acked' && delivery.alone)
        ? batch.map(() => ({ ok: false, fault: held }))
        : settle(batch),
    ),
  })
  const order: string[] = []
  second.work(queue, async ({ payload }) => void order.push(payload.orderId), { concurrency: 10 })
  await second.start()
  await clock.advance(60_000)
  assert.deepEqual(order, ['suspect'])
  for (const orderId of ['a', 'b', 'c']) await second.send(queue, { orderId })
  await clock.advance(5_000)
  assert.deepEqual([order.slice(1), second.counters().orders?.acked], [['a', 'b', 'c'], 3])
  isOpen = false
  await clock.advance(1_000)
  assert.equal(second.counters().orders?.acked, 4)
  await closeNow(second, clock)
})

test('what runs alone waits for no settlement that waits for an open transaction', async () => {
  const on = await stage()
  const { clock, queue, open, store } = on
  await killedWithSuspect(on)

  const held: Fault = { code: 'held', retryable: true, outcome: 'notApplied' }
  const second = await open({
    transport: aroundSettlements(store, async (batch, settle) =>
      batch.some(({ as }) => as === 'acked') && !order.includes('suspect')
        ? batch.map(() => ({ ok: false, fault: held }))
        : settle(batch),
    ),
  })
  const order: string[] = []
  second.work(queue, async ({ payload }) => void order.push(payload.orderId), { concurrency: 10 })
  await second.send(queue, { orderId: 'held' })
  await second.start()
  await clock.advance(60_000)
  assert.deepEqual(order, ['held', 'suspect'])
  assert.equal(second.counters().orders?.acked, 2)
  await closeNow(second, clock)
})
