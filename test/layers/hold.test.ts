import { after, test } from 'node:test'
import { conformance } from 'millrace/conformance'
import { hold } from '../../src/layers/hold.ts'
import { layered } from '../../src/layers/layered.ts'
import { settleEach } from '../../src/layers/settle-each.ts'
import type { Clock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import type { Store } from '../../src/store/store.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { logHarness } from './log-harness.ts'
import { mortalStore } from './mortal.ts'

/** One store for all connections of one subject, on its clock. */
function oneStore(): (clock: Clock) => Promise<Store> {
  const connector = memoryStore()
  const signal = new AbortController().signal
  return (clock) =>
    connector.connect({ signal, clock, random: () => 0.5, logger: silentLogger, migrate: 'auto' })
}

const subjects = [
  logHarness({
    name: 'log + settle each + hold',
    on: (log, clock) => hold(settleEach(log), clock),
  }),
  ...(['hold', 'park'] as const).map((retry) => {
    const storeOn = oneStore()
    return logHarness({
      name: `log + all layers, ${retry}`,
      on: async (log, clock) => {
        const options = { clock, logger: silentLogger, random: Math.random }
        const { thing, die } = mortalStore(await storeOn(clock))
        return { ...layered({ ...log, retry }, { ...options, store: thing }), die }
      },
    })
  }),
]

for (const harness of subjects) {
  after(() => harness.dispose())
  await conformance({ test, harness })
}
