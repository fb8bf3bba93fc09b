import { test } from 'node:test'
import { byDepth } from '../depth.ts'
import { memoryHarness } from '../transports/memory-harness.ts'
import { modelHolds } from './queue-holds.ts'

test('The memory transport does what the model of a queue does, command by command.', async () => {
  await modelHolds(memoryHarness(), {
    numRuns: byDepth({ quick: 40, full: 100, long: 2_000 }),
    maxCommands: 60,
  })
})
