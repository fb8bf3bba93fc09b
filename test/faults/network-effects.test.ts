import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { type Connector, createMillrace, defineQueue, silentLogger } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { kafka } from 'millrace/kafka'
import { nats } from 'millrace/nats'
import { rabbitmq } from 'millrace/rabbitmq'
import { redis } from 'millrace/redis'
import { sqs } from 'millrace/sqs'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { type BackendName, backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'
import { kafkaBehindProxy } from './kafka-behind-proxy.ts'
import { type Behind, behindProxy, near, throughFaults } from './network-faults.ts'
import { patiently } from './patiently.ts'
import { stubbornProducer } from './stubborn-producer.ts'

const subjects: readonly (readonly [BackendName, (port: number) => Connector, Behind?])[] = [
  ['redis 7', (port) => redis(near.redis(port))],
  ['nats', (port) => nats(near.nats(port))],
  ['rabbitmq', (port) => rabbitmq(near.rabbitmq(port))],
  ['sqs elasticmq', (port) => sqs(near.sqs(port))],
  ['kafka', (port) => kafka({ ...near.kafka(port), retry: 'park' }), kafkaBehindProxy],
]

for (const [name, connector, behind = behindProxy] of subjects) {
  const url = backendUrl(name)
  if (url === undefined) continue
  test(`${name}: whatever the network does under load, nothing is lost and each effect is made once.`, async (t) => {
    const proxy = await behind(t, url)
    const { app, orders, effects } = await opened(t, connector(proxy.port))
    const load = stubbornProducer((id) => app.send(orders, id, { id }), { againMs: 20 })
    t.after(load.stop)
    await until('some effects', () => effects().length > 20, 30_000)
    await throughFaults(t, { proxy, app }, async ({ fault, after }) => {
      const [sent, made] = [load.confirmed.size, effects().length]
      const sendsMs = await after('sends', () => load.confirmed.size > sent)
      const workMs = await after('effects', () => effects().length > made)
      t.diagnostic(`${fault}: sends go on after ${sendsMs} ms, work after ${workMs} ms`)
      await after('more effects', () => effects().length > made + 20)
    })
    await load.stop()
    const missing = (): readonly string[] => {
      const made = new Set(effects())
      return [...load.confirmed].filter((payload) => !made.has(payload))
    }
    await until('all effects', () => missing().length === 0, 60_000)
    const all = effects()
    assert.equal(new Set(all).size, all.length, 'an effect was made twice')
    assert.equal((await app.admin.stats(orders)).dead, 0)
    const { started = 0, duplicates = 0 } = app.counters()[orders.name] ?? {}
    t.diagnostic(`${all.length} effects, ${started} runs, ${duplicates} known to the inbox`)
  })
}

function queueOf(name: string) {
  return defineQueue({
    name,
    owner: 'team-a',
    payload: z.string(),
    retry: { attempts: 50, baseMs: 10, maxMs: 200 },
    capacity: 'unbounded',
    handlerTimeoutMs: 500,
  })
}

let opens = 0

async function opened(t: TestContext, transport: Connector) {
  opens += 1
  const orders = queueOf(`network-${process.pid}-${opens}`)
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE effect (payload TEXT)')
  const app = await patiently(() =>
    createMillrace({
      transport,
      store: memoryStore(),
      inbox: sqliteInbox({ db }),
      queues: [orders],
      logger: silentLogger,
    }),
  )
  t.after(() => app.close({ timeoutMs: 1_000 }))
  app.work(orders, async (message, ctx) => {
    await ctx.tx((tx) => {
      tx.prepare('INSERT INTO effect VALUES (?)').run(message.payload)
    })
  })
  await app.start()
  const effects = (): readonly string[] =>
    db
      .prepare('SELECT payload FROM effect')
      .all()
      .map(({ payload }) => String(payload))
  return { app, orders, effects }
}
