import { test } from 'node:test'
import { byDepth } from '../depth.ts'
import { redisHarness } from '../transports/redis-harness.ts'
import { NO_REDIS, redisServers } from '../transports/redis-servers.ts'
import { modelHolds } from './queue-holds.ts'

// Time cannot be moved here: each lease that runs out is really waited for, so the runs are few.
const [server] = redisServers()
if (server === undefined) test('the model on Redis', { skip: NO_REDIS }, () => {})
else {
  test('Redis does what the model of a queue does, command by command.', async () => {
    const { name, url } = server
    const harness = await redisHarness({ name, address: { url } })
    try {
      await modelHolds(harness, {
        numRuns: byDepth({ quick: 5, full: 12, long: 60 }),
        maxCommands: 30,
      })
    } finally {
      await harness.dispose()
    }
  })
}
