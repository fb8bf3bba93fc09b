import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Connector, createMillrace, defineQueue, silentLogger, TransientError } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { kafka } from 'millrace/kafka'
import { nats } from 'millrace/nats'
import { postgres } from 'millrace/postgres'
import { rabbitmq } from 'millrace/rabbitmq'
import { redis } from 'millrace/redis'
import { sqs } from 'millrace/sqs'
import { memoryStore } from 'millrace/store'
import pg from 'pg'
import { z } from 'zod'
import { type BackendName, backendUrl } from '../backends.ts'
import { dropSchema } from '../transports/postgres-servers.ts'
import { account } from '../transports/sqs-harness.ts'
import { until } from '../transports/until.ts'
import { kafkaBehindProxy } from './kafka-behind-proxy.ts'
import { patiently } from './patiently.ts'
import { stubbornProducer } from './stubborn-producer.ts'
import { type TcpProxy, tcpProxy } from './tcp-proxy.ts'

const LIMIT_MS = 1_000
const FAULT_MS = 1_500
const SLOW_MS = 40
const KEYS = 6
const AHEAD = 5
const NAME = `network-order-${process.pid}`

interface Subject {
  readonly backend: BackendName
  readonly connector: (port: number, url: string) => Connector
  readonly behind?: (t: TestContext, url: string) => Promise<TcpProxy>
  /** None of the brokers can halt a key. */
  readonly onDead: 'continue' | 'halt-key'
}

const subjects: Readonly<Record<string, Subject>> = {
  postgres: {
    backend: 'postgres 18',
    connector: (port, url) => {
      const near = new URL(url)
      near.port = String(port)
      const limits = { connectionTimeoutMillis: LIMIT_MS, query_timeout: LIMIT_MS }
      const pool = new pg.Pool({ connectionString: near.href, allowExitOnIdle: true, ...limits })
      pool.on('error', () => {})
      return postgres({ pool, schema: NAME })
    },
    onDead: 'halt-key',
  },
  redis: {
    backend: 'redis 7',
    connector: (port) => redis({ url: `redis://127.0.0.1:${port}`, timeoutMs: LIMIT_MS }),
    onDead: 'halt-key',
  },
  'nats, lanes': {
    backend: 'nats',
    connector: (port) =>
      nats({
        ...{ servers: `nats://127.0.0.1:${port}`, timeoutMs: LIMIT_MS, ackWaitMs: 5_000, lanes: 4 },
        client: { pingInterval: 300, maxPingOut: 2, ignoreClusterUpdates: true },
      }),
    onDead: 'continue',
  },
  'rabbitmq, lanes': {
    backend: 'rabbitmq',
    connector: (port) =>
      rabbitmq({
        ...{ url: `amqp://guest:guest@127.0.0.1:${port}`, timeoutMs: LIMIT_MS, heartbeatMs: 1_000 },
        ...{ lanes: 4, delays: false },
      }),
    onDead: 'continue',
  },
  'sqs fifo': {
    backend: 'sqs elasticmq',
    connector: (port) =>
      sqs({
        ...{ ...account, endpoint: `http://127.0.0.1:${port}`, timeoutMs: LIMIT_MS },
        kind: 'fifo',
      }),
    onDead: 'continue',
  },
  'kafka, held': {
    backend: 'kafka',
    connector: (port) =>
      kafka({
        ...{ brokers: `127.0.0.1:${port}`, retry: 'hold', partitions: 3, timeoutMs: LIMIT_MS },
        ...{ sessionTimeoutMs: 3_000, heartbeatMs: 200, revokeDrainMs: 1_000 },
      }),
    behind: kafkaBehindProxy,
    onDead: 'continue',
  },
}

const faults: readonly (readonly [string, (proxy: TcpProxy) => void])[] = [
  ['cut', (proxy) => proxy.cut()],
  ['what we say is lost', (proxy) => proxy.block('up')],
  ['what it answers is lost', (proxy) => proxy.block('down')],
  ['a black hole', (proxy) => proxy.blackHole()],
  ['slow', (proxy) => proxy.slow(SLOW_MS)],
]

for (const [name, subject] of Object.entries(subjects)) {
  const url = backendUrl(subject.backend)
  if (url === undefined) continue
  test(`${name}: whatever the network does under load, each key has all its effects, once and in order`, async (t) => {
    const proxy = await (subject.behind ?? behindProxy)(t, url)
    if (name === 'postgres') t.after(() => dropSchema(url, NAME))
    const { app, steps, effects, count } = await opened(
      t,
      subject,
      subject.connector(proxy.port, url),
    )
    const loads = Array.from({ length: KEYS }, (_, at) => {
      const key = `key-${at}`
      const send = async (id: string): Promise<void> => {
        await app.send(steps, `${key} ${id}`, { id: `${key}-${id}` })
        // A few wait behind each other, not more than can be done at the end: a retry on SQS takes a second or more.
        while (isOpen && confirmed() - count() > KEYS * AHEAD) await sleep(20)
      }
      return { key, load: stubbornProducer(send, { againMs: 20 }) }
    })
    const confirmed = (): number => loads.reduce((sum, { load }) => sum + load.confirmed.size, 0)
    let isOpen = true
    const stop = async (): Promise<void> => {
      isOpen = false
      await Promise.all(loads.map(({ load }) => load.stop()))
    }
    t.after(stop)
    await until('some effects', () => count() > 20, 30_000)
    for (const [fault, begin] of faults) {
      begin(proxy)
      if (fault !== 'cut') await sleep(FAULT_MS)
      await proxy.heal()
      const [sent, made] = [confirmed(), count()]
      const after = (what: string, look: () => boolean): Promise<void> =>
        until(`${what} after: ${fault}`, look, 60_000).catch(async (error: unknown) => {
          const [health, counters] = [await app.health(), app.counters()]
          t.diagnostic(`health ${JSON.stringify(health)}, counters ${JSON.stringify(counters)}`)
          throw error
        })
      await after('sends', () => confirmed() > sent)
      await after('more effects', () => count() > made + 20)
    }
    await stop()
    await until('all effects', () => count() >= confirmed(), 60_000)
    for (const { key } of loads) {
      const own = effects().filter((effect) => effect.startsWith(`${key} `))
      assert.deepEqual(
        own,
        own.map((_, n) => `${key} order-${n}`),
      )
    }
    assert.equal((await app.admin.stats(steps)).dead, 0)
    t.diagnostic(`${count()} effects, ${app.counters()[steps.name]?.started} runs`)
  })
}

async function behindProxy(t: TestContext, url: string): Promise<TcpProxy> {
  const proxy = await tcpProxy(Number(new URL(url).port))
  t.after(() => proxy.close())
  return proxy
}

async function opened(t: TestContext, { onDead }: Subject, transport: Connector) {
  const steps = defineQueue({
    name: NAME,
    owner: 'team-a',
    payload: z.string(),
    orderingKey: (payload) => payload.slice(0, payload.indexOf(' ')),
    onDead,
    retry: { attempts: 50, baseMs: 20, maxMs: 200 },
    capacity: 'unbounded',
    handlerTimeoutMs: 500,
  })
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE effect (at INTEGER PRIMARY KEY, payload TEXT)')
  // What can halt a key is a store by itself.
  const own = onDead === 'halt-key' ? {} : { store: memoryStore() }
  const options = { queues: [steps], inbox: sqliteInbox({ db }), logger: silentLogger, ...own }
  const app = await patiently(() => createMillrace({ ...options, transport }))
  t.after(() => app.close({ timeoutMs: 1_000 }))
  app.work(steps, async ({ payload, attempt }, ctx) => {
    // What follows has to wait for it.
    if (attempt === 1 && /[37]$/.test(payload)) throw new TransientError('not yet')
    await ctx.tx((tx) => {
      tx.prepare('INSERT INTO effect (payload) VALUES (?)').run(payload)
    })
  })
  await app.start()
  const effects = (): readonly string[] =>
    db
      .prepare('SELECT payload FROM effect ORDER BY at')
      .all()
      .map(({ payload }) => String(payload))
  const count = (): number => Number(db.prepare('SELECT count(*) AS n FROM effect').get()?.['n'])
  return { app, steps, effects, count }
}
