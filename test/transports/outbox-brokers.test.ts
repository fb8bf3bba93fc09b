import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { type Connector, createMillrace, defineQueue, silentLogger } from 'millrace'
import { sqliteInbox } from 'millrace/inbox'
import { kafka } from 'millrace/kafka'
import { nats } from 'millrace/nats'
import { sqliteOutbox } from 'millrace/outbox'
import { rabbitmq } from 'millrace/rabbitmq'
import { redis } from 'millrace/redis'
import { sqs } from 'millrace/sqs'
import { memoryStore } from 'millrace/store'
import { z } from 'zod'
import { type BackendName, backendUrl } from '../backends.ts'
import { tcpProxy } from '../faults/tcp-proxy.ts'
import { account } from './sqs-harness.ts'
import { until } from './until.ts'

const timeoutMs = 2_000

const subjects: readonly (readonly [string, BackendName, (host: string) => Connector])[] = [
  ['redis', 'redis 7', (host) => redis({ url: `redis://${host}`, timeoutMs })],
  ['rabbitmq', 'rabbitmq', (host) => rabbitmq({ url: `amqp://guest:guest@${host}`, timeoutMs })],
  ['nats', 'nats', (host) => nats({ servers: `nats://${host}`, timeoutMs })],
  ['sqs', 'sqs elasticmq', (host) => sqs({ ...account, endpoint: `http://${host}`, timeoutMs })],
  [
    'sqs fifo',
    'sqs elasticmq',
    (host) => sqs({ ...account, endpoint: `http://${host}`, timeoutMs, kind: 'fifo' }),
  ],
  ['kafka, held', 'kafka', (host) => kafka({ brokers: host, retry: 'hold' })],
  ['kafka, parked', 'kafka', (host) => kafka({ brokers: host, retry: 'park' })],
]

let opens = 0

for (const [name, server, connector] of subjects) {
  const url = backendUrl(server)
  if (url === undefined) continue
  test(`${name}: what commits with business rows in SQLite comes to the broker, also one that was away, and nothing else does`, async (t) => {
    const way = await wayTo(t, url)
    opens += 1
    const mail = defineQueue({
      name: `outbox-${process.pid}-${opens}`,
      owner: 'team-growth',
      payload: z.object({ to: z.string() }),
      idempotencyKey: ({ to }) => to,
    })
    const db = new DatabaseSync(':memory:')
    db.exec('CREATE TABLE heard (name TEXT NOT NULL)')
    const app = await createMillrace({
      transport: connector(way.host),
      store: memoryStore(),
      queues: [mail],
      inbox: sqliteInbox({ db }),
      outbox: sqliteOutbox({ db }),
      logger: silentLogger,
    })
    t.after(() => app.close({ timeoutMs: 2_000 }))
    app.work(mail, async ({ payload }, ctx) => {
      await ctx.tx((tx) => {
        tx.prepare('INSERT INTO heard VALUES (?)').run(payload.to)
        if (payload.to === 'first') void ctx.send(mail, { to: 'sent by the first' })
      })
    })
    const heard = (): readonly unknown[] =>
      db
        .prepare('SELECT name FROM heard ORDER BY rowid')
        .all()
        .map((row) => row['name'])
    const inTransaction = async (to: string, end: 'COMMIT' | 'ROLLBACK'): Promise<void> => {
      db.exec('BEGIN IMMEDIATE')
      const sent = app.send(mail, { to }, { tx: db })
      db.exec(end)
      await sent
    }
    await app.start()
    await inTransaction('undone', 'ROLLBACK')
    await inTransaction('first', 'COMMIT')
    await until('both messages', () => heard().length === 2)
    way.leave()
    await inTransaction('while it was away', 'COMMIT')
    await way.comeBack()
    await until('the third message', () => heard().length === 3, 60_000)
    assert.deepEqual(heard(), ['first', 'sent by the first', 'while it was away'])
    assert.equal((await app.admin.stats(mail)).dead, 0)
  })
}

interface Way {
  readonly host: string
  leave(): void
  comeBack(): Promise<void>
}

/** Through a proxy; Kafka tells clients its own address, past one, and stays. */
async function wayTo(t: TestContext, url: string): Promise<Way> {
  if (!url.includes('://')) return { host: url, leave: () => {}, comeBack: async () => {} }
  const proxy = await tcpProxy(Number(new URL(url).port))
  t.after(() => proxy.close())
  return {
    host: `127.0.0.1:${proxy.port}`,
    leave() {
      proxy.refuse()
      proxy.cut()
    },
    comeBack: () => proxy.heal(),
  }
}
