import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type PostgresServer, startPostgres } from '../../scripts/rig/postgres-server.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { envelope, open, signal, until } from '../transports/postgres-bench.ts'
import { NO_SERVER, nodePool, postgresServers } from '../transports/postgres-servers.ts'
import { produce, work } from './load.ts'
import { tcpProxy } from './tcp-proxy.ts'

/** These break the server, so it is a private one. */
const available = postgresServers().some(({ name }) => name === 'postgres 18')

describe('a postgres server that fails', { skip: available ? false : NO_SERVER }, () => {
  let server: PostgresServer
  before(async () => {
    server = await startPostgres(18)
  })
  after(() => server.stop())

  for (const how of ['fast', 'immediate'] as const) {
    const title = `restarted (${how}) under load: what was confirmed is there, and work goes on by itself`
    test(title, () => restartUnderLoad(server, how))
  }
  test('a frozen server does not hold a close for long', () => closeWhileFrozen(server))
  test('a call to a frozen server ends at its limit, and its outcome is unknown', () =>
    callWhileFrozen(server))
  test('a LISTEN connection that died without a word is replaced, and only one remains', () =>
    listenInABlackHole(server))
})

async function restartUnderLoad(server: PostgresServer, how: 'fast' | 'immediate'): Promise<void> {
  const bench = await open(server.url)
  const { transport } = bench
  const stop = new AbortController()
  const confirmed = new Set<string>()
  const done = new Set<string>()
  const producers = [0, 1, 2].map((n) => produce(transport, `p${n}`, confirmed, stop.signal))
  const workers = [0, 1].map(() => work(transport, done, stop.signal))
  await until(async () => done.size > 200)
  await server.restart(how)
  const seen = confirmed.size
  await until(async () => confirmed.size > seen + 200)
  stop.abort()
  await Promise.all([...producers, ...workers])
  const everything = (): boolean => [...confirmed].every((id) => done.has(id))
  await work(transport, done, AbortSignal.timeout(20_000), everything)
  const missing = [...confirmed].filter((id) => !done.has(id))
  assert.deepEqual(missing, [])
  await bench.dispose()
}

async function closeWhileFrozen(server: PostgresServer): Promise<void> {
  const bench = await open(server.url)
  const subscription = await bench.transport.subscribe('q', {
    group: 'g',
    leaseMs: 5_000,
    maxInFlight: 1,
  })
  await bench.transport.send('q', [envelope('a')], { signal })
  await subscription.receive({ max: 1, waitMs: 1_000, signal })
  const waiting = subscription.receive({ max: 1, waitMs: 60_000, signal }).catch(() => [])
  server.freeze()
  try {
    const sending = bench.transport.send('q', [envelope('b')], { signal })
    const rejected = assert.rejects(sending)
    const closed = bench.transport.close().then(() => 'closed')
    assert.equal(await Promise.race([closed, sleep(8_000, 'still open', { ref: false })]), 'closed')
    await rejected
    assert.deepEqual(await waiting, [])
  } finally {
    server.thaw()
  }
  await bench.dispose()
}

async function callWhileFrozen(server: PostgresServer): Promise<void> {
  const bench = await open(server.url, { timeoutMs: 500 })
  server.freeze()
  const error = await bench.transport
    .send('q', [envelope('a')], { signal })
    .catch((cause: unknown) => cause)
    .finally(() => server.thaw())
  const fault = bench.transport.diagnose(error)
  assert.equal(fault.code, 'unavailable')
  assert.equal(fault.outcome, 'unknown')
  await until(async () => {
    const [sent] = await bench.transport.send('q', [envelope('a')], { signal }).catch(() => [])
    return sent?.ok === true
  })
  assert.equal((await bench.transport.browse?.gauge('q'))?.depth, 1)
  await bench.dispose()
}

async function listenInABlackHole(server: PostgresServer): Promise<void> {
  const proxy = await tcpProxy(server.port)
  const url = new URL(server.url)
  url.port = String(proxy.port)
  const bench = await open(server.url, { timeoutMs: 2_000 })
  const far = await bench.another(url.href)
  const pool = nodePool(server.url, 1)
  const count = async (where: string): Promise<number> => {
    const { rows } = await pool.query(
      `SELECT count(*)::int4 AS n FROM pg_stat_activity WHERE ${where}`,
    )
    return rows[0].n
  }
  const listeners = (): Promise<number> => count(`query LIKE 'LISTEN%' OR query = 'SELECT 1'`)
  // Both have to be there before the hole opens, and no heartbeat has asked SELECT 1 yet.
  await until(async () => (await count(`query LIKE 'LISTEN%'`)) === 2)
  proxy.blackHole()
  await proxy.heal()
  // Heartbeat every 10 s, 5 s for its answer: after that a new connection listens and hears at once again.
  const subscription = await reopened(far)
  // A first receive may find the message without having been told; not several in a row.
  let heard = 0
  await until(async () => {
    const sent = envelope(`m${performance.now()}`)
    const waiting = subscription.receive({ max: 10, waitMs: 900, signal })
    await sleep(50)
    const startedAt = performance.now()
    await bench.transport.send('q', [sent], { signal })
    const got = await waiting
    await subscription.settle(got.map((delivery) => ({ as: 'acked', delivery })))
    heard = got.length > 0 && performance.now() - startedAt < 300 ? heard + 1 : 0
    return heard === 3
  }, 40_000)
  await until(async () => (await listeners()) === 2)
  await pool.end()
  await bench.dispose()
  await proxy.close()
}

/** Calls in the hole end at their limit; then the pool has new connections. */
async function reopened(transport: Transport) {
  for (;;) {
    try {
      return await transport.subscribe('q', { group: 'g', leaseMs: 5_000, maxInFlight: 10 })
    } catch {
      await sleep(100)
    }
  }
}
