import { type RegisterOptions, registerPromises } from '../register.ts'
import type { StoreHarness } from './harness.ts'
import { storeFamilies } from './promises/index.ts'
import { type StoreSubject, withStoreScope } from './scope.ts'

export interface StoreConformanceOptions extends RegisterOptions {
  readonly harness: StoreHarness
}

/**
 * Registers a test for every promise of a store. Await it at the top of a test file: it connects
 * once to read the traits.
 *
 * @example
 * import { test, after } from 'node:test'
 * after(() => harness.dispose())
 * await storeConformance({ test, harness })
 */
export async function storeConformance(options: StoreConformanceOptions): Promise<void> {
  const { harness, depth = 'quick' } = options
  const store = await harness.connect()
  const subject: StoreSubject = { traits: store.traits, store, harness }
  const known = registerPromises(options, {
    backend: harness.name,
    families: storeFamilies,
    subject,
    keep: (promised, random) => withStoreScope({ harness, depth, random }, promised.keep),
  })
  await store.close()
  known.refuseStale()
}
