import { test } from 'node:test'
import { memoryHarness } from '../transports/memory-harness.ts'
import { modelHolds } from './queue-holds.ts'

const full = process.env.MILLRACE_DEPTH === 'full'

test('The memory transport does what the model of a queue does, command by command.', async () => {
  await modelHolds(memoryHarness(), { numRuns: full ? 2_000 : 100, maxCommands: 60 })
})
