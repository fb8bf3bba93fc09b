import { test } from 'node:test'
import { postgresHarness } from '../transports/postgres-harness.ts'
import { NO_SERVER, postgresServers } from '../transports/postgres-servers.ts'
import { modelHolds } from './queue-holds.ts'

// Time cannot be moved here: each lease that runs out is really waited for, so the runs are few.
const full = process.env.MILLRACE_DEPTH === 'full'
const [server] = postgresServers()
if (server === undefined) test('the model on Postgres', { skip: NO_SERVER }, () => {})
else {
  test('Postgres does what the model of a queue does, command by command.', async () => {
    const harness = await postgresHarness({ server, client: 'pg' })
    try {
      await modelHolds(harness, { numRuns: full ? 60 : 12, maxCommands: 30 })
    } finally {
      await harness.dispose()
    }
  })
}
