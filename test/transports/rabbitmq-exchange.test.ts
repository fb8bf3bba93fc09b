import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createMillrace,
  defineQueue,
  PermanentError,
  silentLogger,
  ThrottledError,
  TransientError,
} from 'millrace'
import { rabbitmq } from 'millrace/rabbitmq'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { backendUrl } from '../backends.ts'
import { freshName, withChannel } from './rabbitmq-subjects.ts'
import { until } from './until.ts'

const url = backendUrl('rabbitmq')

const orders = defineQueue({
  name: 'orders',
  owner: 'team-a',
  payload: z.string(),
  retry: { attempts: 6, baseMs: 20 },
  capacity: 'unbounded',
})

/** What a handler says at each of its runs, until it has nothing to complain of. */
const failures = (): readonly Error[] => [
  new TransientError('again at once', { delayMs: 0 }),
  new TransientError('again in a moment', { delayMs: 70 }),
  new ThrottledError('not now', { retryAfterMs: 0 }),
  new PermanentError('never'),
]

/** Of a queue that nobody works on, all that came. */
const allIn = (address: string, queue: string): Promise<readonly string[]> =>
  withChannel(address, async (channel) => {
    const came: string[] = []
    for (;;) {
      const message = await channel.get(queue, { noAck: true })
      if (message === false) return came
      came.push(message.content.toString())
    }
  })

if (url !== undefined) {
  for (const type of ['fanout', 'topic'] as const) {
    for (const delays of [true, false]) {
      test(`What a ${type} exchange gave to several queues is retried and redriven in its own alone, delayed by ${delays ? 'the broker' : 'the store'}.`, async (t) => {
        const [exchange, ours, theirs] = ['exchange', 'ours', 'theirs'].map(freshName)
        assert.ok(exchange && ours && theirs)
        await withChannel(url, async (channel) => {
          await channel.assertExchange(exchange, type)
          await channel.assertQueue(theirs)
          await channel.bindQueue(theirs, exchange, 'order.*')
        })
        const names = { queue: ours, exchange, routingKey: 'order.paid' }
        const app = await createMillrace({
          transport: rabbitmq({ url, delays, queues: { [orders.name]: names } }),
          store: memoryStore(),
          queues: [orders],
          logger: silentLogger,
        })
        t.after(async () => {
          await app.close()
          await withChannel(url, async (channel) => {
            for (const queue of [ours, theirs]) await channel.deleteQueue(queue)
            await channel.deleteExchange(exchange)
          })
        })
        const complaints = failures()
        let runs = 0
        app.work(orders, () => {
          const complaint = complaints[runs]
          runs += 1
          if (complaint !== undefined) throw complaint
        })
        await app.start()
        const { id } = await app.send(orders, 'paid')
        const dead = async () => (await app.admin.deadLetters.list(orders, {})).items
        await until('its death', async () => (await dead()).length === 1)
        assert.equal(runs, complaints.length)
        await app.admin.deadLetters.redrive(orders, { ids: [id], reason: 'mended' })
        await until('the redriven one', () => runs === complaints.length + 1)
        await app.send(orders, 'next')
        await until('the next one', () => runs === complaints.length + 2)
        assert.deepEqual(await allIn(url, theirs), ['"paid"', '"next"'])
      })
    }
  }
}
