import { after, test } from 'node:test'
import { storeConformance } from 'millrace/conformance'
import { memoryStore } from 'millrace/store'
import { recordResult } from '../conformance-results.ts'
import { callerClockHarness } from './store-harness.ts'

const harness = callerClockHarness('memory store', memoryStore())
after(() => harness.dispose())
const depth = process.env.MILLRACE_DEPTH === 'full' ? 'full' : 'quick'
await storeConformance({ test, harness, depth, onResult: recordResult })
