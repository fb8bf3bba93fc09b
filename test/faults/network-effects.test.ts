import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
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
import { account } from '../transports/sqs-harness.ts'
import { until } from '../transports/until.ts'
import { kafkaBehindProxy } from './kafka-behind-proxy.ts'
import { patiently } from './patiently.ts'
import { stubbornProducer } from './stubborn-producer.ts'
import { type TcpProxy, tcpProxy } from './tcp-proxy.ts'

const LIMIT_MS = 1_000
const FAULT_MS = 1_500
const SLOW_MS = 40

type Behind = (t: TestContext, url: string) => Promise<TcpProxy>

const subjects: readonly (readonly [BackendName, (port: number) => Connector, Behind?])[] = [
  ['redis 7', (port) => redis({ url: `redis://127.0.0.1:${port}`, timeoutMs: LIMIT_MS })],
  [
    'nats',
    (port) =>
      nats({
        servers: `nats://127.0.0.1:${port}`,
        timeoutMs: LIMIT_MS,
        ackWaitMs: 5_000,
        client: { pingInterval: 300, maxPingOut: 2, ignoreClusterUpdates: true },
      }),
  ],
  [
    'rabbitmq',
    (port) =>
      rabbitmq({
        url: `amqp://guest:guest@127.0.0.1:${port}`,
        timeoutMs: LIMIT_MS,
        heartbeatMs: 1_000,
      }),
  ],
  [
    'sqs elasticmq',
    (port) => sqs({ ...account, endpoint: `http://127.0.0.1:${port}`, timeoutMs: LIMIT_MS }),
  ],
  [
    'kafka',
    (port) =>
      kafka({
        ...{ brokers: `127.0.0.1:${port}`, retry: 'park', partitions: 3, timeoutMs: LIMIT_MS },
        ...{ sessionTimeoutMs: 3_000, heartbeatMs: 200, revokeDrainMs: 1_000 },
      }),
    kafkaBehindProxy,
  ],
]

const faults: readonly (readonly [string, (proxy: TcpProxy) => void])[] = [
  ['cut', (proxy) => proxy.cut()],
  ['what we say is lost', (proxy) => proxy.block('up')],
  ['what it answers is lost', (proxy) => proxy.block('down')],
  ['a black hole', (proxy) => proxy.blackHole()],
  ['slow', (proxy) => proxy.slow(SLOW_MS)],
]

const behindProxy: Behind = async (t, url) => {
  const proxy = await tcpProxy(Number(new URL(url).port))
  t.after(() => proxy.close())
  return proxy
}

for (const [name, connector, behind = behindProxy] of subjects) {
  const url = backendUrl(name)
  if (url === undefined) continue
  test(`${name}: whatever the network does under load, nothing is lost and each effect is made once.`, async (t) => {
    const proxy = await behind(t, url)
    const { app, orders, effects } = await opened(t, connector(proxy.port))
    const load = stubbornProducer((id) => app.send(orders, id, { id }), { againMs: 20 })
    t.after(load.stop)
    await until('some effects', () => effects().length > 20, 30_000)
    for (const [fault, begin] of faults) {
      begin(proxy)
      if (fault !== 'cut') await sleep(FAULT_MS)
      await proxy.heal()
      const healedAt = performance.now()
      const [sent, made] = [load.confirmed.size, effects().length]
      const after = async (what: string, look: () => boolean): Promise<number> => {
        await until(`${what} after: ${fault}`, look, 60_000).catch(async (error: unknown) => {
          const [health, counters] = [await app.health(), app.counters()]
          t.diagnostic(`health ${JSON.stringify(health)}, counters ${JSON.stringify(counters)}`)
          throw error
        })
        return Math.round(performance.now() - healedAt)
      }
      const sendsMs = await after('sends', () => load.confirmed.size > sent)
      const workMs = await after('effects', () => effects().length > made)
      t.diagnostic(`${fault}: sends go on after ${sendsMs} ms, work after ${workMs} ms`)
      await after('more effects', () => effects().length > made + 20)
    }
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
  const open = () =>
    createMillrace({
      transport,
      store: memoryStore(),
      inbox: sqliteInbox({ db }),
      queues: [orders],
      logger: silentLogger,
    })
  const app = await patiently(open)
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
