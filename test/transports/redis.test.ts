import { after, describe, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { recordResult } from '../conformance-results.ts'
import { givenClient, type RedisHarnessOptions, redisHarness } from './redis-harness.ts'
import { NO_REDIS, redisCluster, redisServers, smallestUser } from './redis-servers.ts'

const depth = process.env.MILLRACE_DEPTH === 'full' ? 'full' : 'quick'

const servers = redisServers()
const [newest] = servers
const cluster = redisCluster()

const subjects: readonly RedisHarnessOptions[] = [
  ...(await Promise.all(servers.map(smallestUser))),
  ...(newest ? [await givenClient(newest)] : []),
  ...(cluster ? [{ name: 'redis cluster', address: { cluster } }] : []),
]

if (subjects.length === 0) test('redis', { skip: NO_REDIS }, () => {})

/** Most of the kit waits for leases and delays; its tests use a queue of their own each and may wait together. */
const AT_ONCE = 4

for (const subject of subjects) {
  const harness = await redisHarness(subject)
  after(() => harness.dispose())
  const promises: { readonly title: string; readonly keep: () => Promise<void> }[] = []
  await conformance({
    test: (title, keep) => promises.push({ title, keep }),
    harness,
    depth,
    onResult: recordResult,
  })
  describe(harness.name, { concurrency: AT_ONCE }, () => {
    for (const { title, keep } of promises) test(title, keep)
  })
}
