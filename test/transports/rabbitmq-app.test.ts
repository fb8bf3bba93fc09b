import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMillrace, defineQueue, PermanentError, silentLogger } from 'millrace'
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
  retry: { attempts: 3, baseMs: 20 },
  capacity: 'unbounded',
})

if (url !== undefined) {
  const physical = freshName('app')
  const queues = { [orders.name]: { queue: physical } }

  test('An app on RabbitMQ with a store retries, buries and redrives.', async (t) => {
    const transport = rabbitmq({ url, queues })
    const app = await createMillrace({
      ...{ transport, store: memoryStore(), queues: [orders], logger: silentLogger },
    })
    t.after(async () => {
      await app.close()
      await withChannel(url, (channel) => channel.deleteQueue(physical))
    })
    const attempts: string[] = []
    let broken = true
    app.work(orders, (message) => {
      attempts.push(`${message.payload} ${message.attempt}`)
      if (message.payload === 'poison' && broken) throw new PermanentError('no')
      if (message.payload === 'flaky' && message.attempt < 3) throw new Error('try again')
    })
    await app.start()
    const poison = await app.send(orders, 'poison')
    await app.send(orders, 'flaky')
    const isDead = async (): Promise<boolean> =>
      (await app.admin.deadLetters.list(orders, {})).items.length === 1
    await until('three attempts and a death', async () => attempts.length === 4 && (await isDead()))
    assert.deepEqual(attempts.sort(), ['flaky 1', 'flaky 2', 'flaky 3', 'poison 1'])
    broken = false
    await app.admin.deadLetters.redrive(orders, { ids: [poison.id], reason: 'fixed' })
    await until('the redriven one', () => attempts.length === 5)
    assert.equal(attempts[4], 'poison 1')
    assert.equal((await app.health()).ok, true)
  })

  test('An app on RabbitMQ without a store is refused, and told what it lacks.', async () => {
    await assert.rejects(
      createMillrace({
        transport: rabbitmq({ url, queues }),
        queues: [orders],
        logger: silentLogger,
      }),
      /dead letters that can be listed and redriven/,
    )
    await withChannel(url, (channel) => channel.deleteQueue(physical))
  })
}
