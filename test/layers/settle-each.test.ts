import { after, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { settleEach } from '../../src/layers/settle-each.ts'
import { logHarness } from './log-harness.ts'

for (const harness of [
  logHarness({ name: 'log', on: (log) => log }),
  logHarness({ name: 'log + settle each', on: settleEach }),
]) {
  after(() => harness.dispose())
  await conformance({ test, harness })
}
