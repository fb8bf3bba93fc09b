import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { createClient } from '@redis/client'
import type { RedisAddress, RedisSettings } from 'millrace/redis'
import { type RedisSentinels, startRedisSentinels } from '../../scripts/rig/redis-sentinels.ts'
import type { RedisServer } from '../../scripts/rig/redis-server.ts'
import { connectTo, envelope, signal } from '../transports/redis-bench.ts'
import { freshPrefix, NO_REDIS, redisServers } from '../transports/redis-servers.ts'
import { until } from '../transports/until.ts'
import { produce, work } from './load.ts'
import { tcpProxy } from './tcp-proxy.ts'

/** These kill servers, so they are private ones. */
const available = redisServers().some(({ name }) => name === 'redis 7')

type Sentinels = NonNullable<RedisAddress['sentinels']>

/** What was confirmed longer ago than this has long been sent to the replica: replication is asynchronous, and quick. */
const LAG_MS = 1_000

describe('redis with sentinels', { skip: available ? false : NO_REDIS }, () => {
  let site: RedisSentinels
  before(async () => {
    site = await startRedisSentinels()
  })
  after(() => site?.stop())

  test('Sentinels that let nobody in, or know no such primary, are said as that, without a password.', async () => {
    const { name, nodes, password } = site
    const cases: readonly (readonly [Partial<Sentinels>, RegExp])[] = [
      [{ sentinelPassword: 'geheim' }, /does not let this account in .*WRONGPASS.*sentinels/],
      [{ sentinelPassword: site.sentinelPassword, name: 'other' }, /No such master/],
      [{ sentinelPassword: site.sentinelPassword, password: 'geheim' }, /WRONGPASS/],
    ]
    for (const [more, said] of cases) {
      const sentinels = { name, nodes, password, ...more }
      const error: unknown = await connectTo({ sentinels, timeoutMs: 3_000 }).catch(
        (refusal: unknown) => refusal,
      )
      assert.ok(error instanceof Error, `${said} was not refused`)
      assert.match(error.message, said)
      assert.doesNotMatch(error.message, /\n|geheim/)
    }
  })
  test('Sentinels that answer later than the time for a call are said as that, whatever was asked of them by then.', async () => {
    const { name, nodes, password, sentinelPassword } = site
    const proxy = await tcpProxy(nodes[0]?.port ?? 0)
    try {
      const slow = [{ host: '127.0.0.1', port: proxy.port }]
      const sentinels = { name, nodes: slow, password, sentinelPassword }
      for (const delayMs of [40, 50, 60, 70, 80, 90, 150]) {
        proxy.slow(delayMs)
        const opening = connectTo({ sentinels, timeoutMs: 100 })
        await assert.rejects(opening, /cannot connect to Redis \(/)
      }
    } finally {
      await proxy.close()
    }
  })
  test('The primary is killed under load: senders and workers go on at the replica by themselves, and nothing older than the lag is lost.', (t) =>
    failover(t, site))
  test('With min-replicas-to-write a primary without its replica takes nothing, says so, and goes on with it.', () =>
    withoutReplica(site))
})

async function opened(t: TestContext, site: RedisSentinels) {
  const { name, nodes, password, sentinelPassword } = site
  const settings: RedisSettings = { prefix: freshPrefix(), timeoutMs: 5_000 }
  const transport = await connectTo({
    sentinels: { name, nodes, password, sentinelPassword },
    ...settings,
  })
  t.after(() => transport.close())
  await transport.topology.ensure([{ name: 'q', owner: 'team', maxDepth: undefined }], signal)
  return transport
}

async function failover(t: TestContext, site: RedisSentinels): Promise<void> {
  const transport = await opened(t, site)
  const stop = new AbortController()
  const confirmed = new Set<string>()
  const done = new Set<string>()
  const producers = [0, 1, 2].map((n) => produce(transport, `p${n}`, confirmed, stop.signal))
  const workers = [0, 1].map(() => work(transport, done, stop.signal))
  await until('200 messages', () => done.size > 200)
  const early = new Set(confirmed)
  const lagEndsAt = Date.now() + LAG_MS
  await until('the lag', () => Date.now() > lagEndsAt)
  await site.servers[0]?.halt('crash')
  const killedAt = Date.now()
  const [sent, worked] = [confirmed.size, done.size]
  await until('sends at the replica', () => confirmed.size > sent + 20, 60_000)
  const sendsMs = Date.now() - killedAt
  await until('work at the replica', () => done.size > worked + 20, 60_000)
  t.diagnostic(`sends go on after ${sendsMs} ms, work after ${Date.now() - killedAt} ms`)
  stop.abort()
  await Promise.all([...producers, ...workers])
  const missing = (): string[] => [...confirmed].filter((id) => !done.has(id))
  await work(transport, done, AbortSignal.timeout(5_000), () => missing().length === 0)
  t.diagnostic(`${confirmed.size} confirmed, ${missing().length} lost with the primary`)
  assert.deepEqual(
    missing().filter((id) => early.has(id)),
    [],
  )
}

/** Runs behind the failover: the replica is the primary now, and the old one comes back as its replica. */
async function withoutReplica(site: RedisSentinels): Promise<void> {
  const [old, primary] = site.servers.map((server) => ({
    ...server,
    url: server.url.replace('//', `//:${site.password}@`),
  }))
  assert.ok(old && primary)
  await old.resume()
  // The sentinels would say so, too, some ten seconds later.
  await until('the old one to be loaded', () =>
    answer(old, ['REPLICAOF', '127.0.0.1', String(primary.port)]).then(
      () => true,
      () => false,
    ),
  )
  const replication = () => answer(primary, ['INFO', 'replication'])
  await until('the replica', async () => /state=online/.test(await replication()), 40_000)
  await answer(primary, ['CONFIG', 'SET', 'min-replicas-max-lag', '1'])
  await answer(primary, ['CONFIG', 'SET', 'min-replicas-to-write', '1'])
  const transport = await connectTo({ url: primary.url, prefix: freshPrefix() })
  try {
    const spec = { name: 'q', owner: 'team', maxDepth: undefined }
    await until('a first write', () =>
      transport.topology.ensure([spec], signal).then(
        () => true,
        () => false,
      ),
    )
    const send = (id: string) => transport.send('q', [envelope(id)], { signal })
    old.freeze()
    await until('a refusal', () =>
      send(`early-${Date.now()}`).then(
        () => false,
        (error: unknown) => {
          const { code, retryable, outcome } = transport.diagnose(error)
          assert.deepEqual([code, retryable, outcome], ['unavailable', true, 'notApplied'])
          assert.match(String(error), /NOREPLICAS/)
          return true
        },
      ),
    )
    old.thaw()
    await until('a send', () =>
      send('late').then(
        ([sent]) => sent?.ok === true,
        () => false,
      ),
    )
  } finally {
    old.thaw()
    await transport.close()
  }
}

async function answer({ url }: RedisServer, command: readonly string[]): Promise<string> {
  const client = createClient({ url })
  await client.connect()
  try {
    return String(await client.sendCommand([...command]))
  } finally {
    client.destroy()
  }
}
