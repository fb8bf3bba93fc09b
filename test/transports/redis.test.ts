import { test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { type Kit, runKits } from '../kits.ts'
import { givenClient, type RedisHarnessOptions, redisHarness } from './redis-harness.ts'
import { NO_REDIS, redisCluster, redisServers, smallestUser } from './redis-servers.ts'

const servers = redisServers()
const [newest] = servers
const cluster = redisCluster()

const subjects: readonly RedisHarnessOptions[] = [
  ...(await Promise.all(servers.map((server) => smallestUser(server)))),
  ...(newest ? [await givenClient(newest)] : []),
  ...(cluster ? [{ name: 'redis cluster', address: { cluster }, named: true }] : []),
]

if (subjects.length === 0) test('redis', { skip: NO_REDIS }, () => {})

const kits: Kit[] = []
for (const subject of subjects) {
  const harness = await redisHarness(subject)
  kits.push({
    name: harness.name,
    atOnce: 4,
    register: (test) => conformance({ test, harness, depth: kitDepth, onResult: recordResult }),
    dispose: () => harness.dispose(),
  })
}
// One after the other: the client builds all its commands anew whenever the address is another one than the last time.
await runKits(kits, 1)
