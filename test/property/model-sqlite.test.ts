import { test } from 'node:test'
import { byDepth } from '../depth.ts'
import { nodeFileHarness } from '../transports/sqlite-harness.ts'
import { modelHolds } from './queue-holds.ts'

test('SQLite does what the model of a queue does, command by command.', async () => {
  const harness = await nodeFileHarness()
  try {
    await modelHolds(harness, {
      numRuns: byDepth({ quick: 10, full: 25, long: 500 }),
      maxCommands: 60,
    })
  } finally {
    await harness.dispose()
  }
})
