import { after, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { settleEach } from '../../src/layers/settle-each.ts'
import { backendUrl } from '../backends.ts'
import { recordResult } from '../conformance-results.ts'
import { kafkaHarness } from './kafka-harness.ts'

const depth = process.env.MILLRACE_DEPTH === 'full' ? 'full' : 'quick'
const brokers = backendUrl('kafka')

if (brokers !== undefined) {
  const harness = kafkaHarness({ brokers })
  after(() => harness.dispose())
  await conformance({ test, harness, depth, onResult: recordResult })
  const each = kafkaHarness({ brokers, name: 'kafka + settle each', on: settleEach })
  after(() => each.dispose())
  await conformance({ test, harness: each, depth })
}
