import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { postgresInbox } from 'millrace/inbox'
import { postgresOutbox } from 'millrace/outbox'
import { inboxContext } from '../transports/inbox-subjects.ts'
import { outboxContext } from '../transports/outbox-subjects.ts'
import { envelope, open, signal } from '../transports/postgres-bench.ts'
import {
  dropSchema,
  freshSchema,
  NO_SERVER,
  nodePool,
  postgresServers,
} from '../transports/postgres-servers.ts'
import { until } from '../transports/until.ts'
import { tcpProxy } from './tcp-proxy.ts'

const servers = postgresServers().filter(({ name }) => name !== 'postgres')
/** Far above what the buffers of two systems take. */
const MESSAGES = 200
const BODY_BYTES = 262_144
/** From here on it is the large answer. */
const READ_MAX_BYTES = 65_536
const LEASE_MS = 3_000
/** What the server waits for a reader, and a round of whoever comes next. */
const BACK_MS = 19_000

interface Asleep {
  /** Of a reader that is stopped as by SIGSTOP when an answer becomes large: it says nothing more, and nobody hangs up. */
  readonly url: string
  fallAsleep(): void
  wake(): Promise<void>
}

async function asleepAt(t: TestContext, url: string): Promise<Asleep> {
  const address = new URL(url)
  const proxy = await tcpProxy(Number(address.port))
  t.after(() => proxy.close())
  address.port = String(proxy.port)
  return {
    url: address.href,
    fallAsleep: () => proxy.stopAfter(READ_MAX_BYTES),
    wake: () => proxy.close(),
  }
}

/** How many connections stand in the middle of writing an answer. */
async function writing(url: string): Promise<number> {
  const pool = nodePool(url, 1)
  const { rows } = await pool.query(
    `SELECT count(*)::int4 AS n FROM pg_stat_activity WHERE wait_event = 'ClientWrite'`,
  )
  await pool.end()
  return rows[0].n
}

const large = (id: string, orderingKey?: string) =>
  envelope(id, {
    body: new Uint8Array(BODY_BYTES),
    ...(orderingKey === undefined ? {} : { orderingKey }),
  })

async function claimUnread(t: TestContext, url: string): Promise<void> {
  const bench = await open(url)
  t.after(() => bench.dispose())
  const asleep = await asleepAt(t, url)
  const sleeper = await bench.another(asleep.url)
  const ids = Array.from({ length: MESSAGES }, (_, n) => `m${n}`)
  for (let at = 0; at < MESSAGES; at += 20) {
    const part = ids.slice(at, at + 20)
    await bench.transport.send(
      'q',
      part.map((id, n) => large(id, `key ${at + n}`)),
      { signal },
    )
  }
  const options = { group: 'g', leaseMs: LEASE_MS, maxInFlight: MESSAGES }
  const stopped = await sleeper.subscribe('q', options)
  const other = await bench.transport.subscribe('q', options)
  asleep.fallAsleep()
  const receiving = stopped.receive({ max: MESSAGES, waitMs: 1_000, signal }).catch(() => [])
  await until('the server waits for the reader', async () => (await writing(url)) > 0)

  const seen = new Map<string, number | undefined>()
  const receive = async (): Promise<boolean> => {
    const got = await other.receive({ max: 50, waitMs: 500, signal })
    for (const one of got) seen.set(one.envelope.id, one.deliveries)
    await other.settle(got.map((delivery) => ({ as: 'acked', delivery })))
    return seen.size === MESSAGES
  }
  await until('all of them are handed out elsewhere', receive, BACK_MS)
  // It never had them: nothing is counted against anybody.
  assert.deepEqual(new Set(seen.values()), new Set([1]))
  await asleep.wake()
  await receiving
}

async function relayUnread(t: TestContext, url: string): Promise<void> {
  const schema = freshSchema()
  const pool = nodePool(url, 1)
  const asleep = await asleepAt(t, url)
  const other = await postgresOutbox({ url, schema }).connect(outboxContext())
  const stopped = await postgresOutbox({ url: asleep.url, schema }).connect(outboxContext())
  t.after(async () => {
    await Promise.all([stopped.close(), other.close(), pool.end()])
    await dropSchema(url, schema)
  })
  const client = await pool.connect()
  await client.query('BEGIN')
  const rows = await other.transaction(client)
  for (let n = 0; n < MESSAGES; n += 1) await rows?.add('orders', [large(`m${n}`)])
  await client.query('COMMIT')
  client.release()

  asleep.fallAsleep()
  const passing = stopped.relay(MESSAGES, async () => []).catch(() => undefined)
  await until('the server waits for the reader', async () => (await writing(url)) > 0)
  const seen = new Set<string>()
  const relay = async (): Promise<boolean> => {
    await other.relay(MESSAGES, async (all) => {
      for (const one of all) seen.add(one.envelope.id)
      return all.map((one) => ({ id: one.envelope.id, ok: true, duplicate: false }))
    })
    return seen.size === MESSAGES
  }
  await until('all of them are taken by another relay', relay, BACK_MS)
  await asleep.wake()
  await passing
}

async function effectUnread(t: TestContext, url: string): Promise<void> {
  const schema = freshSchema()
  const pool = nodePool(url, 1)
  const asleep = await asleepAt(t, url)
  const inbox = await postgresInbox({ url: asleep.url, schema }).connect(inboxContext())
  t.after(async () => {
    await Promise.all([inbox.close(), pool.end()])
    await dropSchema(url, schema)
  })
  const account = `"${schema.replaceAll('"', '""')}".account`
  await pool.query(`CREATE TABLE ${account} AS SELECT 1 AS n`)
  asleep.fallAsleep()
  const key = { queue: 'orders', key: 'a' }
  const running = inbox.run(key, {
    leaseMs: LEASE_MS,
    effect: async (tx) => {
      await tx.query(`UPDATE ${account} SET n = n + 1`)
      await tx.query(`SELECT repeat('x', ${BODY_BYTES}) FROM generate_series(1, ${MESSAGES})`)
    },
    last: async () => true,
  })
  const ended = running.then(() => 'done').catch(() => 'failed')
  await until('the server waits for the reader', async () => (await writing(url)) > 0)
  const startedAt = performance.now()
  await pool.query(`UPDATE ${account} SET n = n + 10`)
  assert.ok(performance.now() - startedAt < BACK_MS)
  assert.deepEqual((await pool.query(`SELECT n FROM ${account}`)).rows, [{ n: 11 }])
  await asleep.wake()
  assert.equal(await ended, 'failed')
}

async function listenerUnread(t: TestContext, url: string): Promise<void> {
  const bench = await open(url)
  t.after(() => bench.dispose())
  const asleep = await asleepAt(t, url)
  const pool = nodePool(url, 1)
  t.after(() => pool.end())
  const LISTENERS = `SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' OR query = 'SELECT 1'`
  const listeners = async () => (await pool.query(LISTENERS)).rows.map(({ pid }) => Number(pid))
  await until('the first listens', async () => (await listeners()).length > 0)
  const before = new Set(await listeners())
  await bench.another(asleep.url)
  const fresh = async () => (await listeners()).filter((pid) => !before.has(pid))
  await until('it listens', async () => (await fresh()).length === 1)
  const [listener] = await fresh()
  const { rows } = await pool.query('SELECT query FROM pg_stat_activity WHERE pid = $1', [listener])
  const channel = /LISTEN ("(?:[^"]|"")*")/.exec(rows[0].query)?.[1] ?? ''
  assert.notEqual(channel, '')
  asleep.fallAsleep()
  const name = channel.slice(1, -1).replaceAll('""', '"')
  const notify = `SELECT pg_notify($1, n || repeat('x', 7900)) FROM generate_series(1, 4000) AS n`
  await pool.query(notify, [name])
  await until('the server waits for it', async () => (await writing(url)) > 0)
  await until('it is gone', async () => !(await listeners()).includes(Number(listener)), BACK_MS)
  const usage = async (): Promise<number> =>
    (await pool.query('SELECT pg_notification_queue_usage() AS used')).rows[0].used
  await until('what nobody read is cleaned', async () => {
    await pool.query(notify.replace('4000', '1'), [name])
    return (await usage()) < 0.001
  })
}

const cases = [
  ['a claim: its messages are handed out elsewhere', claimUnread],
  ['a pass of a relay: its rows leave by another', relayUnread],
  ['an effect: what it locked is free again, and nothing of it is committed', effectUnread],
  ['a listener: the notifications that wait for it are cleaned', listenerUnread],
] as const

for (const { name, url } of servers) {
  describe(`a reader of ${name} that stands still in the middle of an answer`, () => {
    for (const [what, check] of cases) test(what, (t) => check(t, url))
  })
}
if (postgresServers().length === 0)
  test('unread answers of postgres', { skip: NO_SERVER }, () => {})
