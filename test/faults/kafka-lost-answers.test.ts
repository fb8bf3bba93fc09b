import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { kafka } from 'millrace/kafka'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'
import { kafkaBehindProxy } from './kafka-behind-proxy.ts'
import { stubbornProducer } from './stubborn-producer.ts'

const orders = defineQueue({
  name: 'lost-answers',
  owner: 'team-a',
  payload: z.string(),
  retry: { attempts: 50, baseMs: 10, maxMs: 200 },
  capacity: 'unbounded',
  handlerTimeoutMs: 500,
})

/** So often, each time a little later: the answers are lost at every moment of a consumer that has just not been heard. */
const ROUNDS = 12

if (backendUrl('kafka') !== undefined) {
  test('kafka: a consumer that gave its partitions up while the broker still heard it joins again', async (t) => {
    const proxy = await kafkaBehindProxy(t)
    let losses = 0
    const app = await createMillrace({
      transport: kafka({
        ...{ brokers: `127.0.0.1:${proxy.port}`, retry: 'park', partitions: 3, timeoutMs: 1_000 },
        ...{ sessionTimeoutMs: 3_000, heartbeatMs: 200, revokeDrainMs: 500 },
      }),
      store: memoryStore(),
      queues: [orders],
      logger: {
        ...silentLogger,
        warn: (said) => {
          if (said.includes('all partitions are lost')) losses += 1
        },
      },
    })
    t.after(() => app.close({ timeoutMs: 1_000 }))
    let runs = 0
    app.work(orders, () => {
      runs += 1
    })
    await app.start()
    const load = stubbornProducer((id) => app.send(orders, id, { id }), { againMs: 20 })
    t.after(load.stop)
    await until('some work', () => runs > 20, 30_000)
    for (let round = 0; round < ROUNDS; round += 1) {
      proxy.block('up')
      await sleep(1_300 + 60 * round)
      await proxy.heal()
      await sleep(200)
      // From here on the broker hears it, and it does not hear the broker.
      proxy.block('down')
      await sleep(1_300 + 100 * (round % 5))
      await proxy.heal()
      const done = runs
      await until(`work after round ${round}`, () => runs > done + 20, 40_000)
    }
    t.diagnostic(`the partitions were given up ${losses} times`)
  })
}
