import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createMillrace, defineQueue, PermanentError, silentLogger } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
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

  test('A message without message-id becomes a dead letter on a queue with an inbox and no key of its own, and runs once redriven.', async (t) => {
    const bare = freshName('bare')
    const db = new DatabaseSync(':memory:')
    const app = await createMillrace({
      transport: rabbitmq({ url, queues: { [orders.name]: { queue: bare } } }),
      store: memoryStore(),
      inbox: sqliteInbox({ db }),
      queues: [orders],
      logger: silentLogger,
    })
    t.after(async () => {
      await app.close()
      await withChannel(url, (channel) => channel.deleteQueue(bare))
    })
    const ran: string[] = []
    app.work(orders, ({ payload, idempotencyKey }) => void ran.push(`${payload} ${idempotencyKey}`))
    await app.start()
    await withChannel(url, async (channel) => {
      channel.sendToQueue(bare, Buffer.from('"without"'))
      channel.sendToQueue(bare, Buffer.from('"with"'), { messageId: 'order-7' })
      await channel.checkQueue(bare)
    })
    const dead = async () => (await app.admin.deadLetters.list(orders, {})).items
    await until('both', async () => ran.length === 1 && (await dead()).length === 1)
    assert.deepEqual(ran, ['with order-7'])
    const [letter] = await dead()
    assert.match(
      letter?.reason ?? '',
      /it came without an id.* give queue "orders" an idempotencyKey/,
    )
    // From here on it has an id that stays: the one that the letter has.
    await app.admin.deadLetters.redrive(orders, { ids: [letter?.id ?? ''], reason: 'looked at' })
    await until('the redriven one', () => ran.length === 2)
    assert.equal(ran[1], `without ${letter?.id}`)
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
