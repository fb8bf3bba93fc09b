import { layered } from '../../src/layers/layered.ts'
import { systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import type { Transport } from '../../src/transport/transport.ts'
import type { MortalTop } from '../layers/bare-harness.ts'
import { mortalStore } from '../layers/mortal.ts'

/** All that start-up chooses, with one store for all connections. */
export function withStore(): (raw: Transport) => Promise<MortalTop> {
  const connector = memoryStore()
  const context = { clock: systemClock(), random: Math.random, logger: silentLogger } as const
  const signal = new AbortController().signal
  return async (raw) => {
    const opened = await connector.connect({ ...context, signal, migrate: 'auto' })
    const { thing: store, die } = mortalStore(opened)
    return { ...layered(raw, { ...context, store }), die }
  }
}
