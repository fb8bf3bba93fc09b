import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { type App, createMillrace, defineQueue, silentLogger } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { rabbitmq } from 'millrace/rabbitmq'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { startRabbitmq } from '../../scripts/rig/rabbitmq-server.ts'
import { backendUrl } from '../backends.ts'
import { until } from '../transports/until.ts'
import { stubbornProducer } from './stubborn-producer.ts'
import { tcpProxy } from './tcp-proxy.ts'

const orders = defineQueue({
  name: 'orders',
  owner: 'team-a',
  payload: z.string(),
  retry: { attempts: 50, baseMs: 10, maxMs: 200 },
  capacity: 'unbounded',
  // So that a failed attempt is given up after some seconds of an alarm, and not after half a minute.
  handlerTimeoutMs: 500,
})
const GIVEN_UP_AFTER_MS = 5_500
const EVERY_FOURTH = 4

test('An app whose handlers fail now and then loses nothing and makes each effect once: cuts, an alarm, a broker that is killed.', {
  skip: backendUrl('rabbitmq') === undefined,
}, async (t) => {
  const server = await startRabbitmq()
  t.after(() => server.stop())
  const proxy = await tcpProxy(server.port)
  t.after(() => proxy.close())
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE effect (payload TEXT)')
  const app = await opened(t, `amqp://guest:guest@127.0.0.1:${proxy.port}`, db)
  const load = stubbornProducer((id) => app.send(orders, id, { id }), { againMs: 50 })
  t.after(load.stop)
  const more = async (what: string): Promise<void> => {
    const seen = effects(db).length
    await until(what, () => effects(db).length > seen + 30, 60_000)
  }
  await more('some effects')
  for (let times = 0; times < 3; times++) {
    proxy.cut()
    await more('effects after a cut')
  }
  await server.ctl('set_disk_free_limit', '1000000GB')
  await until('refused sends', () => load.refused() > 3)
  const givenUpAt = Date.now() + GIVEN_UP_AFTER_MS
  await until('failed attempts to be given up', () => Date.now() > givenUpAt)
  await server.ctl('set_disk_free_limit', '50MB')
  await more('effects after the alarm')
  await server.restart('crash')
  await more('effects after the crash')
  await load.stop()
  await until('all effects', () => effects(db).length >= load.confirmed.size, 60_000)
  const made = effects(db)
  assert.deepEqual(
    [...load.confirmed].filter((payload) => !made.includes(payload)),
    [],
  )
  assert.equal(new Set(made).size, made.length, 'an effect was made twice')
  assert.equal((await app.admin.stats(orders)).dead, 0)
  const { started = 0, duplicates = 0 } = app.counters()[orders.name] ?? {}
  t.diagnostic(`${made.length} effects, ${started} runs, ${duplicates} known to the inbox`)
})

async function opened(t: TestContext, url: string, db: DatabaseSync): Promise<App<DatabaseSync>> {
  const app = await createMillrace({
    transport: rabbitmq({ url, timeoutMs: 5_000, heartbeatMs: 1_000 }),
    store: memoryStore(),
    inbox: sqliteInbox({ db }),
    queues: [orders],
    logger: silentLogger,
  })
  t.after(() => app.close({ timeoutMs: 1_000 }))
  let runs = 0
  app.work(orders, async (message, ctx) => {
    runs += 1
    if (runs % EVERY_FOURTH === 0) throw new Error('now and then')
    await ctx.tx((tx) => {
      tx.prepare('INSERT INTO effect VALUES (?)').run(message.payload)
    })
  })
  await app.start()
  return app
}

function effects(db: DatabaseSync): readonly string[] {
  return db
    .prepare('SELECT payload FROM effect')
    .all()
    .map(({ payload }) => String(payload))
}
