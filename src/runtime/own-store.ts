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

/** What a config file tells besides: the workers that `millrace start` runs. */
export interface ConfiguredChoice extends StoreChoice {
  readonly workers?: readonly object[]
}

/**
 * The store of the app; else the transport's own where a worker has a kill switch: who is stopped by it hears there of a resume. An app
 * makes its tables when that happens, so with `migrate: 'check'` they have to be there before.
 */
export function storeToMigrate(config: ConfiguredChoice): StoreConnector | undefined {
  const { transport, workers = [] } = config
  const chosen = storeOf(config)
  if (chosen !== undefined || !isStoring(transport)) return chosen
  return workers.some(hasKillSwitch) ? transport.ownStore() : undefined
}

/** Off where it is missing or false. */
export function hasKillSwitch(worker: object): boolean {
  const given = read(worker, 'killSwitch')
  return given !== undefined && given !== false
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
