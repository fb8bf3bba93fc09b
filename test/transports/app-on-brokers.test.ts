import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createMillrace, defineQueue, PermanentError } from 'millrace'
import { memoryStore } from 'millrace/store'
import { memoryInbox } from 'millrace/testing'
import { z } from 'zod'
import { silentLogger } from '../../src/model/logger.ts'
import { backendUrl } from '../backends.ts'
import { brokerConnectors, type Connector } from './broker-connectors.ts'
import { until } from './until.ts'

const TRICKLE = 120

async function appOn(t: TestContext, transport: Connector) {
  const orders = defineQueue({
    name: `app-${process.pid}-${Date.now().toString(36)}`,
    owner: 'team-a',
    payload: z.object({ n: z.number() }),
    retry: { attempts: 3, baseMs: 50 },
    idempotencyKey: ({ n }) => `order-${n}`,
  })
  const app = await createMillrace({
    transport,
    queues: [orders],
    store: memoryStore(),
    inbox: memoryInbox(),
    logger: silentLogger,
  })
  t.after(() => app.close({ timeoutMs: 5_000 }))
  return { app, orders }
}

for (const [name, backend, connector] of brokerConnectors) {
  const url = backendUrl(backend)
  if (url === undefined) continue

  test(`${name}: what trickles in is worked on, what fails comes back, what dies is redriven`, async (t) => {
    const { app, orders } = await appOn(t, connector(url))
    const runs = new Map<number, number>()
    let broken = true
    app.work(
      orders,
      ({ payload: { n }, attempt }) => {
        runs.set(n, (runs.get(n) ?? 0) + 1)
        if (n === 7 && attempt < 3) throw new Error('try again')
        if (n === 13 && broken) throw new PermanentError('no')
      },
      { concurrency: 20 },
    )
    await app.start()
    // One by one while the workers run: a wake-up that gets lost shows here.
    for (let n = 0; n < TRICKLE; n++) await app.send(orders, { n })
    await until(`${TRICKLE} orders`, () => runs.size === TRICKLE && runs.get(7) === 3, 60_000)
    await until('the dead letter', async () => {
      return (await app.admin.deadLetters.list(orders)).items.length === 1
    })
    const [letter] = (await app.admin.deadLetters.list(orders)).items
    assert.deepEqual(
      [letter?.payload, letter?.owner, letter?.errorClass],
      [{ n: 13 }, 'team-a', 'permanent'],
    )
    broken = false
    const { moved } = await app.admin.deadLetters.redrive(orders, { ids: [letter?.id ?? ''] })
    assert.equal(moved, 1)
    await until('the redriven order', () => runs.get(13) === 2)
    await until('nothing left', async () => {
      const { depth, dead } = await app.admin.stats(orders)
      return depth === 0 && dead === 0
    })
  })

  test(`${name}: a key is stored once, a batch whole, a paused queue waits`, async (t) => {
    const { app, orders } = await appOn(t, connector(url))
    const seen: number[] = []
    app.work(orders, ({ payload: { n } }) => void seen.push(n))
    await app.admin.pause(orders)
    await app.start()
    const first = await app.send(orders, { n: 1 }, { idempotencyKey: 'k' })
    const again = await app.send(orders, { n: 1 }, { idempotencyKey: 'k' })
    assert.deepEqual(again, { id: first.id, duplicate: true })
    const conflict = app.send(orders, { n: 2 }, { idempotencyKey: 'k' })
    await assert.rejects(conflict, { code: 'MILLRACE_IDEMPOTENCY_CONFLICT' })
    const batch = Array.from({ length: 25 }, (_, i) => ({ n: 100 + i }))
    assert.equal((await app.sendBatch(orders, batch)).length, 25)
    assert.deepEqual(seen, [])
    await app.admin.resume(orders)
    await until('all of them', () => seen.length === 26, 60_000)
    assert.deepEqual(
      seen.toSorted((a, b) => a - b),
      [1, ...batch.map(({ n }) => n)],
    )
  })
}
