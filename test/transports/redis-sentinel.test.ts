import { conformance } from 'millrace/conformance'
import { startRedisSentinels } from '../../scripts/rig/redis-sentinels.ts'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { type Register, runKits } from '../kits.ts'
import { redisHarness } from './redis-harness.ts'
import { redisServers } from './redis-servers.ts'

const NAME = 'redis 7, sentinels'

let dispose = async (): Promise<void> => {}

/** Servers of its own, started only when the kit runs: a primary, a replica and three sentinels. */
async function register(test: Register): Promise<void> {
  const site = await startRedisSentinels()
  dispose = site.stop
  const { name, nodes, password, sentinelPassword } = site
  const sentinels = { name, nodes, password, sentinelPassword }
  const harness = await redisHarness({ name: NAME, address: { sentinels } })
  dispose = async () => {
    await harness.dispose()
    await site.stop()
  }
  await conformance({ test, harness, depth: kitDepth, onResult: recordResult })
}

/**
 * One test at a time: the client builds all its commands anew for each address that it connects to, here the sentinel's, the
 * primary's and the replica's, and a process that does so for several tests is late itself.
 */
const kit = { name: NAME, atOnce: 1, leftToFull: true, register, dispose: () => dispose() }

if (redisServers().some(({ name }) => name === 'redis 7')) {
  await runKits([kit], 1)
}
