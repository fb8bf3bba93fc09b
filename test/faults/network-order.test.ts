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
import { until } from '../transports/until.ts'
import { kafkaBehindProxy } from './kafka-behind-proxy.ts'
import { type Behind, behindProxy, LIMIT_MS, near, throughFaults } from './network-faults.ts'
import { patiently } from './patiently.ts'
import { stubbornProducer } from './stubborn-producer.ts'

const KEYS = 6
const AHEAD = 5
const NAME = `network-order-${process.pid}`

interface Subject {
  readonly backend: BackendName
  readonly connector: (port: number, url: string) => Connector
  readonly behind?: Behind
  /** None of the brokers can halt a key. */
  readonly onDead: 'continue' | 'halt-key'
}

const subjects: Readonly<Record<string, Subject>> = {
  postgres: {
    backend: 'postgres 18',
    connector: (port, url) => {
      const address = new URL(url)
      address.port = String(port)
      const limits = { connectionTimeoutMillis: LIMIT_MS, query_timeout: LIMIT_MS }
      const pool = new pg.Pool({ connectionString: address.href, allowExitOnIdle: true, ...limits })
      pool.on('error', () => {})
      return postgres({ pool, schema: NAME })
    },
    onDead: 'halt-key',
  },
  redis: {
    backend: 'redis 7',
    connector: (port) => redis(near.redis(port)),
    onDead: 'halt-key',
  },
  'nats, lanes': {
    backend: 'nats',
    connector: (port) => nats({ ...near.nats(port), lanes: 4 }),
    onDead: 'continue',
  },
  'rabbitmq, lanes': {
    backend: 'rabbitmq',
    connector: (port) => rabbitmq({ ...near.rabbitmq(port), lanes: 4, delays: false }),
    onDead: 'continue',
  },
  'sqs fifo': {
    backend: 'sqs elasticmq',
    connector: (port) => sqs({ ...near.sqs(port), kind: 'fifo' }),
    onDead: 'continue',
  },
  'kafka, held': {
    backend: 'kafka',
    connector: (port) => kafka({ ...near.kafka(port), retry: 'hold' }),
    behind: kafkaBehindProxy,
    onDead: 'continue',
  },
}

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
    await throughFaults(t, { proxy, app }, async ({ after }) => {
      const [sent, made] = [confirmed(), count()]
      await after('sends', () => confirmed() > sent)
      await after('more effects', () => count() > made + 20)
    })
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
