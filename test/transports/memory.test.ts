import { after, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { memoryHarness } from './memory-harness.ts'

const harness = memoryHarness()
after(() => harness.dispose())
await conformance({
  test,
  harness,
  depth: process.env.MILLRACE_DEPTH === 'full' ? 'full' : 'quick',
})
