import { after, test } from 'node:test'
import { storeConformance } from 'millrace/conformance'
import { memoryStore } from 'millrace/store'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { callerClockHarness } from './store-harness.ts'

const harness = callerClockHarness('memory store', memoryStore())
after(() => harness.dispose())
await storeConformance({ test, harness, depth: kitDepth, onResult: recordResult })
