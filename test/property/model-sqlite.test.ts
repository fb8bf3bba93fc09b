import { test } from 'node:test'
import { nodeFileHarness } from '../transports/sqlite-harness.ts'
import { modelHolds } from './queue-holds.ts'

const full = process.env.MILLRACE_DEPTH === 'full'

test('SQLite does what the model of a queue does, command by command.', async () => {
  const harness = await nodeFileHarness()
  try {
    await modelHolds(harness, { numRuns: full ? 500 : 25, maxCommands: 60 })
  } finally {
    await harness.dispose()
  }
})
