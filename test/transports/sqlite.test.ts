import { after, test } from 'node:test'
import { conformance, type Deviation } from 'millrace/conformance'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { betterSqliteHarness, nodeFileHarness, nodeMemoryHarness } from './sqlite-harness.ts'

const oneHandle: readonly Deviation[] = [
  {
    title: "A message sent in the user's transaction is there when it commits, and not before.",
    reason:
      'a database in memory has one handle, so a look from elsewhere waits until the open transaction has ended',
  },
]

const subjects = [
  { open: nodeFileHarness, deviations: [] },
  { open: nodeMemoryHarness, deviations: oneHandle },
  { open: betterSqliteHarness, deviations: [] },
]

for (const { open, deviations } of subjects) {
  const harness = await open()
  after(() => harness.dispose())
  await conformance({ test, harness, depth: kitDepth, deviations, onResult: recordResult })
}
