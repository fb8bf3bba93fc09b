import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type StoreHarness, storeConformance } from 'millrace/conformance'
import type { RedisAddress } from 'millrace/redis'
import { redisStore } from 'millrace/store'
import { backendUrl } from '../backends.ts'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { type Kit, runKits } from '../kits.ts'
import { freshPrefix, smallestUser } from '../transports/redis-servers.ts'
import { connectStore } from './store-harness.ts'

interface Subject {
  readonly prefix: string
  readonly address: RedisAddress
  readonly dispose: () => Promise<void>
}

function harnessOf(name: string, { prefix, address, dispose }: Subject): StoreHarness {
  const connector = redisStore({ ...address, prefix })
  return {
    name: `${name} store`,
    slow: 1,
    leaseMs: 500,
    connect: () => connectStore(connector),
    dispose,
  }
}

const kits: Kit[] = []
for (const name of ['redis 7', 'redis 6.2', 'valkey', 'redis cluster'] as const) {
  const found = backendUrl(name)
  if (found === undefined) continue
  const subject: Subject =
    name === 'redis cluster'
      ? { prefix: freshPrefix(), address: { cluster: found.split(',') }, dispose: async () => {} }
      : await smallestUser({ name, url: found })
  const harness = harnessOf(name, subject)
  kits.push({
    name: harness.name,
    atOnce: 1,
    register: (test) =>
      storeConformance({ test, harness, depth: kitDepth, onResult: recordResult }),
    dispose: () => harness.dispose(),
  })
}
// One after the other: the client builds all its commands anew whenever the address is another one than the last time.
await runKits(kits, 1)

test('what is wrong with the options of a Redis store is said at once', () => {
  const options: { url: string } = JSON.parse('{"nobody":1,"prefix":"{"}')
  assert.throws(() => redisStore(options), {
    code: 'MILLRACE_INVALID_OPTIONS',
    message: /redisStore: .*nobody.*url, client, sentinels.*prefix/,
  })
})
