import { after, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { memoryHarness } from '../transports/memory-harness.ts'
import { bare } from './bare.ts'

const memory = memoryHarness()
after(() => memory.dispose())
const { transaction: _, foreignTransactions: __, ...harness } = memory

// The subject of the layers' tests must itself be what it says it is.
await conformance({
  test,
  harness: { ...harness, name: 'bare', connect: async () => bare(await memory.connect()) },
})
