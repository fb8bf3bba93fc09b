import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createClient } from '@redis/client'
import { type RedisOptions as ServerOptions, startRedis } from '../../scripts/rig/redis-server.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Logger } from '../../src/model/logger.ts'
import {
  connectTo,
  envelope,
  open,
  type RawClient,
  signal,
  subscribeTo,
} from '../transports/redis-bench.ts'
import { NO_REDIS, redisServers } from '../transports/redis-servers.ts'
import { until } from '../transports/until.ts'

/** Each sets a server up in a way of its own, so they are private ones. */
const kinds = (['redis 7', 'redis 6.2', 'valkey'] as const).filter((kind) =>
  redisServers().some(({ name }) => name === kind),
)

if (kinds.length === 0) test('redis, settings', { skip: NO_REDIS }, () => {})

for (const kind of kinds) {
  describe(`${kind}, settings`, () => {
    const withServer = async (
      args: readonly string[],
      body: (url: string) => Promise<void>,
    ): Promise<void> => {
      const options: ServerOptions = { args }
      const server = await startRedis(kind, options)
      try {
        await body(server.url)
      } finally {
        await server.stop()
      }
    }
    test('A server that evicts is refused, whatever it evicts.', async () => {
      await withServer(['--maxmemory-policy', 'allkeys-lru'], async (url) => {
        await assert.rejects(connectTo({ url }), /maxmemory-policy is allkeys-lru.*noeviction/)
        const { raw, dispose } = await rawTo(url)
        await raw.sendCommand(['CONFIG', 'SET', 'maxmemory-policy', 'volatile-ttl'])
        await assert.rejects(connectTo({ url }), /volatile-ttl/)
        await raw.sendCommand(['CONFIG', 'SET', 'maxmemory-policy', 'noeviction'])
        await (await connectTo({ url })).close()
        dispose()
      })
    })
    test('A replica is refused, and one that a server becomes is away for now.', () =>
      withServer([], replica))
    test('Durability is disk only where every write is on disk before its answer; less is said.', () =>
      withServer([], durability))
    test('A full server refuses sends as full, and workers drain it without help.', () =>
      withServer(['--maxmemory', '12mb'], (url) => full(url, () => ({}))))
    test('So is a full server whose messages wait behind others of their keys.', () =>
      withServer(['--maxmemory', '12mb'], (url) =>
        full(url, (n) => ({ orderingKey: `key-${n % 7}` })),
      ))
    test('So is a full server whose messages stand on levels that no worker has read before.', () =>
      withServer(['--maxmemory', '12mb'], (url) => full(url, (n) => ({ priority: n % 4 }))))
    test('So is a full server whose messages wait for their turn among fair keys.', () =>
      withServer(['--maxmemory', '12mb'], (url) =>
        full(url, (n) => ({ fairKey: `tenant-${n % 3}` })),
      ))
    test('A user without INFO, CONFIG and SUBSCRIBE works, and the log says what was not seen.', () =>
      withServer([], (url) => smallUser(url)))
    test('A wrong password is denied, and does not show.', () =>
      withServer(['--requirepass', 'richtig'], async (url) => {
        const error: unknown = await connectTo({ url: url.replace('//', '//:geheim@') }).catch(
          (e: unknown) => e,
        )
        assert.ok(error instanceof Error)
        assert.match(error.message, /WRONGPASS|invalid/)
        assert.doesNotMatch(error.message, /geheim/)
        await (await connectTo({ url: url.replace('//', '//:richtig@') })).close()
      }))
  })
}

interface Raw {
  readonly raw: RawClient
  dispose(): void
}

async function rawTo(url: string): Promise<Raw> {
  const { createClient } = await import('@redis/client')
  const client = createClient({ url })
  client.on('error', () => {})
  await client.connect()
  return { raw: client, dispose: () => client.destroy() }
}

async function replica(url: string): Promise<void> {
  const bench = await open(url)
  await bench.raw.sendCommand(['REPLICAOF', '127.0.0.1', '1'])
  await assert.rejects(connectTo({ url }), /is a replica/)
  const error = await bench.transport
    .send('q', [envelope('a')], { signal })
    .catch((e: unknown) => e)
  const { code, retryable, outcome } = bench.transport.diagnose(error)
  assert.deepEqual([code, retryable, outcome], ['unavailable', true, 'notApplied'])
  await bench.raw.sendCommand(['REPLICAOF', 'NO', 'ONE'])
  const [sent] = await bench.transport.send('q', [envelope('a')], { signal })
  assert.equal(sent?.ok && !sent.duplicate, true)
  await bench.dispose()
}

function listeningLogger(): Logger & { readonly warnings: string[] } {
  const warnings: string[] = []
  return {
    warnings,
    debug() {},
    info() {},
    warn: (message) => void warnings.push(message),
    error() {},
  }
}

async function durability(url: string): Promise<void> {
  const { raw, dispose } = await rawTo(url)
  const seen = async (): Promise<readonly [string, string]> => {
    const logger = listeningLogger()
    const transport = await connectTo({ url }, logger)
    await transport.close()
    return [transport.traits.durability, logger.warnings.join()]
  }
  assert.deepEqual(await seen(), ['disk', ''])
  // A client of the user's own speaks RESP 3, where settings come as a map.
  const client = createClient({ url, RESP: 3 })
  await client.connect()
  const given = await connectTo({ client }, listeningLogger())
  assert.equal(given.traits.durability, 'disk')
  await given.close()
  client.destroy()
  await raw.sendCommand(['CONFIG', 'SET', 'appendfsync', 'everysec'])
  const [durable, warning] = await seen()
  assert.equal(durable, 'process')
  assert.match(warning, /appendfsync is everysec/)
  await raw.sendCommand(['CONFIG', 'SET', 'appendonly', 'no'])
  const [none, worse] = await seen()
  assert.equal(none, 'process')
  assert.match(worse, /appendonly is off/)
  dispose()
}

/** @param more what messages have besides, by their number */
async function full(url: string, more: (n: number) => Partial<Envelope>): Promise<void> {
  const bench = await open(url)
  const { transport } = bench
  const body = new Uint8Array(10_000)
  const stored: string[] = []
  for (let n = 0; ; n++) {
    assert.ok(n < 5_000, 'the server was never full')
    const id = `m${n}`
    try {
      await transport.send('q', [envelope(id, { body, ...more(n) })], { signal })
      stored.push(id)
    } catch (error) {
      const { code, retryable, outcome } = transport.diagnose(error)
      assert.deepEqual([code, retryable, outcome], ['full', true, 'notApplied'])
      break
    }
  }
  const subscription = await subscribeTo(transport)
  const renew = subscription.renew
  assert.ok(renew)
  const done: string[] = []
  await until('all that was stored', async () => {
    const batch = await subscription.receive({ max: 50, waitMs: 0, signal })
    const renewed = await renew(batch, 60_000)
    assert.ok(renewed.every(({ ok }) => ok))
    const [first, ...rest] = batch
    if (first === undefined) return done.length === stored.length
    const again = first.deliveries === 1 && done.length % 100 === 0
    const outcomes = await subscription.settle([
      again
        ? { as: 'released', delivery: first, delayMs: 0, counted: true }
        : { as: 'acked', delivery: first },
      ...rest.map((delivery) => ({ as: 'acked', delivery }) as const),
    ])
    assert.ok(outcomes.every(({ ok }) => ok))
    done.push(...(again ? rest : batch).map(({ envelope: { id } }) => id))
    return done.length === stored.length
  })
  assert.deepEqual(done.toSorted(), stored.toSorted())
  const [sent] = await transport.send('q', [envelope('after', { body })], { signal })
  assert.equal(sent?.ok, true)
  await bench.dispose()
}

async function smallUser(url: string): Promise<void> {
  const { raw, dispose } = await rawTo(url)
  const rules = '+@all -info -config -subscribe -psubscribe -publish ~{small:*'
  await raw.sendCommand(['ACL', 'SETUSER', 'small', 'on', '>pw', ...rules.split(' ')])
  const logger = listeningLogger()
  const far = await connectTo({ url: url.replace('//', '//small:pw@'), prefix: 'small' }, logger)
  await far.topology.ensure([{ name: 'q', owner: 'team', maxDepth: undefined }], signal)
  const subscription = await subscribeTo(far)
  const waiting = subscription.receive({ max: 1, waitMs: 10_000, signal })
  await far.send('q', [envelope('a')], { signal })
  assert.equal((await waiting).length, 1)
  const said = logger.warnings.join('\n')
  assert.match(said, /cannot see whether Redis evicts/)
  assert.match(said, /persistence cannot be seen/)
  assert.match(said, /cannot listen for news/)
  await far.close()
  dispose()
}
