import { after, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { recordResult } from '../conformance-results.ts'
import { kitDepth } from '../depth.ts'
import { memoryHarness } from './memory-harness.ts'

const harness = memoryHarness()
after(() => harness.dispose())
await conformance({ test, harness, depth: kitDepth, onResult: recordResult })
