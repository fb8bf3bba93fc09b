import { after, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { bareHarness } from './bare-harness.ts'

// What the layers are tested on must itself be what it says it is.
const harness = bareHarness({ name: 'bare', on: (broker) => broker })
after(() => harness.dispose())
await conformance({ test, harness })
