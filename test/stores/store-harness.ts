import type { StoreHarness } from 'millrace/conformance'
import type { Store, StoreConnector } from 'millrace/store'
import { virtualClock } from 'millrace/testing'
import { type Clock, systemClock } from '../../src/model/clock.ts'
import { silentLogger } from '../../src/model/logger.ts'

/** Connects as the runtime does. */
export function connectStore(
  connector: StoreConnector,
  clock: Clock = systemClock(),
): Promise<Store> {
  const { signal } = new AbortController()
  return connector.connect({
    signal,
    clock,
    random: Math.random,
    logger: silentLogger,
    migrate: 'auto',
  })
}

/** A store that goes by the clock of its caller, which stands still. */
export function callerClockHarness(
  name: string,
  connector: StoreConnector,
  dispose: () => Promise<void> = async () => {},
): StoreHarness {
  const time = virtualClock()
  return {
    name,
    time,
    slow: 1,
    leaseMs: 500,
    connect: () => connectStore(connector, time),
    dispose,
  }
}
