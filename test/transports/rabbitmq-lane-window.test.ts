import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue, silentLogger } from 'millrace'
import { rabbitmq } from 'millrace/rabbitmq'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { laneFor, lanePlaceOf } from '../../src/transports/rabbitmq/lane-place.ts'
import { resolve } from '../../src/transports/rabbitmq/options.ts'
import { backendUrl } from '../backends.ts'
import { deleteLanes, freshName, withChannel } from './rabbitmq-subjects.ts'
import { until } from './until.ts'

const skip = backendUrl('rabbitmq') === undefined
const url = backendUrl('rabbitmq') ?? 'amqp://localhost'
const MESSAGES = 40

/** Twice the concurrency, shared out evenly and rounded up. */
for (const { lanes, concurrency, withWorker } of [
  { lanes: 16, concurrency: 10, withWorker: 2 },
  { lanes: 3, concurrency: 10, withWorker: 7 },
  { lanes: 16, concurrency: 1, withWorker: 1 },
]) {
  test(`Of one key in ${lanes} lanes ${withWorker} are with a worker of ${concurrency}, and all others with the broker.`, {
    skip,
  }, async (t) => {
    const name = freshName('window').replaceAll(' ', '-')
    const queue = defineQueue({
      ...{ name, owner: 'team-test', payload: z.number() },
      orderingKey: () => 'one',
      onDead: 'continue',
    })
    const app = await createMillrace({
      transport: rabbitmq({ url, lanes, delays: false }),
      ...{ queues: [queue], store: memoryStore(), logger: silentLogger },
    })
    t.after(async () => {
      await app.close({ timeoutMs: 0 })
      await withChannel(url, (channel) => deleteLanes(channel, name, lanes))
    })
    await app.sendBatch(
      queue,
      Array.from({ length: MESSAGES }, (_, n) => n),
    )
    const started = Promise.withResolvers<void>()
    app.work(
      queue,
      (_, { signal }) => {
        started.resolve()
        return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      },
      { concurrency },
    )
    await app.start()
    await started.promise
    const place = lanePlaceOf(resolve({ url, lanes }), name)
    const lane = laneFor(place, { orderingKey: 'one', id: '' }).queue
    await withChannel(url, async (channel) => {
      const ready = async () => (await channel.checkQueue(lane)).messageCount
      await until('what the worker may have', async () => (await ready()) === MESSAGES - withWorker)
      assert.equal(await ready(), MESSAGES - withWorker)
    })
  })
}
