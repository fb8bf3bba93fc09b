import { test } from 'node:test'
import { byDepth } from '../depth.ts'
import { postgresHarness } from '../transports/postgres-harness.ts'
import { NO_SERVER, postgresServers } from '../transports/postgres-servers.ts'
import { modelHolds } from './queue-holds.ts'

// Time cannot be moved here: each lease that runs out is really waited for, so the runs are few.
const [server] = postgresServers()
if (server === undefined) test('the model on Postgres', { skip: NO_SERVER }, () => {})
else {
  test('Postgres does what the model of a queue does, command by command.', async () => {
    const harness = await postgresHarness({ server, client: 'pg' })
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
