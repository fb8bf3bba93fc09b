import { after, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { recordResult } from '../conformance-results.ts'
import { memoryHarness } from './memory-harness.ts'

const harness = memoryHarness()
after(() => harness.dispose())
const depth = process.env.MILLRACE_DEPTH === 'full' ? 'full' : 'quick'
await conformance({ test, harness, depth, onResult: recordResult })
