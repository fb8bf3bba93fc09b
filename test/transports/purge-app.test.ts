import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue, hasCode, type Logger, silentLogger } from 'millrace'
import { memory } from 'millrace/memory'
import { nats } from 'millrace/nats'
import { redis } from 'millrace/redis'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { backendUrl } from '../backends.ts'
import { type AppPlace, sqlPlaces } from './app-places.ts'
import { until } from './until.ts'

const redisUrl = backendUrl('redis 7')
const natsUrl = backendUrl('nats')

let made = 0
const fresh = (): string => `purge-${process.pid}-${Date.now().toString(36)}-${++made}`

const places: readonly AppPlace[] = [
  { name: 'memory', open: async () => ({ transport: memory(), dispose: async () => {} }) },
  ...sqlPlaces,
  ...(redisUrl === undefined
    ? []
    : [
        {
          name: 'redis',
          open: async () => ({
            transport: redis({ url: redisUrl, prefix: fresh() }),
            dispose: async () => {},
          }),
        },
      ]),
]

for (const { name, open } of places) {
  test(`${name}: a purge throws away what waits and says so; what runs, what is dead and other queues stay`, async (t) => {
    const { transport, dispose } = await open()
    const base = { owner: 'team', payload: z.number(), retry: { attempts: 1 } }
    const queue = defineQueue({ ...base, name: fresh() })
    const other = defineQueue({ ...base, name: fresh() })
    const said: string[] = []
    const logger: Logger = { ...silentLogger, warn: (message) => void said.push(message) }
    const worker = await createMillrace({ transport, queues: [queue, other], logger: silentLogger })
    const desk = await createMillrace({ transport, queues: [queue, other], logger })
    t.after(async () => {
      await Promise.all([worker.close(), desk.close()])
      await dispose()
    })
    const end = Promise.withResolvers<void>()
    worker.work(
      queue,
      async ({ payload }) => {
        if (payload === 0) throw new Error('dies')
        await end.promise
      },
      { concurrency: 1 },
    )
    await worker.send(queue, 0)
    await worker.start()
    const stats = () => desk.admin.stats(queue)
    await until('a dead letter', async () => (await stats()).dead === 1)
    await worker.send(queue, 1)
    await until('a run', async () => (await stats()).inFlight === 1)
    await worker.sendBatch(queue, [2, 3, 4])
    await worker.send(queue, 5, { delayMs: 3_600_000 })
    const key = { idempotencyKey: 'six' }
    const { id } = await worker.send(queue, 6, key)
    await worker.send(other, 7)

    assert.deepEqual(await desk.admin.purge(queue.name), { removed: 5 })
    assert.deepEqual(said, [
      `queue "${queue.name}": purged by hand, 5 messages that waited are gone`,
    ])
    const { depth, scheduled, inFlight, dead } = await stats()
    assert.deepEqual([depth, scheduled, inFlight, dead], [0, 0, 1, 1])
    assert.equal((await desk.admin.stats(other)).depth, 1)
    assert.equal(await desk.admin.messages.get(queue, id), null)
    assert.deepEqual(await worker.send(queue, 6, key), { id, duplicate: true })
    end.resolve()
    await until('its end', async () => worker.counters()[queue.name]?.acked === 1)
    assert.deepEqual(await desk.admin.purge(queue), { removed: 0 })
  })
}

test('nats: where what waits cannot be thrown away alone, a purge is refused in one line', {
  skip: natsUrl === undefined,
}, async (t) => {
  const queue = defineQueue({ name: fresh(), owner: 'team', payload: z.number() })
  const app = await createMillrace({
    transport: nats({ servers: natsUrl ?? '' }),
    ...{ store: memoryStore(), queues: [queue], logger: silentLogger },
  })
  t.after(() => app.close())
  await app.send(queue, 1)
  await assert.rejects(app.admin.purge(queue), (error) => {
    assert.ok(hasCode(error, 'MILLRACE_BACKEND_FAULT'))
    assert.match(
      error.message,
      /^transport \S+ cannot throw away what waits in a queue; use the broker's own tools while no worker runs/,
    )
    return true
  })
  assert.equal((await app.admin.stats(queue)).depth, 1)
})
