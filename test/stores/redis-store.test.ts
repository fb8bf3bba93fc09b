import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type StoreHarness, storeConformance } from 'millrace/conformance'
import { type RedisStoreOptions, redisStore } from 'millrace/store'
import { backendUrl } from '../backends.ts'
import { freshPrefix } from '../transports/redis-servers.ts'
import { connectStore } from './store-harness.ts'

const depth = process.env.MILLRACE_DEPTH === 'full' ? 'full' : 'quick'

function harnessOf(name: string, options: RedisStoreOptions): StoreHarness {
  const connector = redisStore({ ...options, prefix: freshPrefix() })
  return {
    name: `${name} store`,
    slow: 1,
    leaseMs: 500,
    connect: () => connectStore(connector),
    async dispose() {},
  }
}

for (const name of ['redis 7', 'redis 6.2', 'valkey', 'redis cluster'] as const) {
  const found = backendUrl(name)
  if (found === undefined) continue
  const address = name === 'redis cluster' ? { cluster: found.split(',') } : { url: found }
  const harness = harnessOf(name, address)
  after(() => harness.dispose())
  await storeConformance({ test, harness, depth })
}

test('what is wrong with the options of a Redis store is said at once', () => {
  const options: { url: string } = JSON.parse('{"nobody":1,"prefix":"{"}')
  assert.throws(() => redisStore(options), {
    code: 'MILLRACE_INVALID_OPTIONS',
    message: /redisStore: .*nobody.*url, client, sentinels.*prefix/,
  })
})
