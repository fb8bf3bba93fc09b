import { after, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { copies } from '../../src/layers/copies.ts'
import { bareHarness } from './bare-harness.ts'

const harness = bareHarness({
  name: 'bare with delays + copies',
  more: ({ delay }) => ({ delay }),
  on: copies,
})
after(() => harness.dispose())
await conformance({ test, harness })
