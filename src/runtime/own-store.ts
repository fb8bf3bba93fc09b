import { read } from '../model/probe.ts'
import type { StoreConnector, StoringConnector } from '../store/store.ts'
import type { Connector } from '../transport/transport.ts'

/** What decides which store an app has. Config files and JavaScript have no types, so it may be anything. */
export interface StoreChoice {
  readonly transport: Connector
  readonly store?: StoreConnector
  readonly queues: readonly object[]
}

/**
 * The store that was given; else the transport's own, where a queue shares a breaker, a rate or a limit with other workers. Who shares nothing has
 * none: its tables need not be made.
 */
export function storeOf({ transport, store, queues }: StoreChoice): StoreConnector | undefined {
  if (store !== undefined || !isStoring(transport)) return store
  return queues.some(sharesFlow) ? transport.ownStore() : undefined
}

/** A SQL database, Redis or memory. */
export function isStoring(transport: unknown): transport is StoringConnector {
  return typeof read(transport, 'ownStore') === 'function'
}

function sharesFlow(queue: object): boolean {
  return (['breaker', 'rateLimit', 'concurrencyLimit'] as const).some(
    (part) => read(read(queue, part), 'scope') === 'store',
  )
}
