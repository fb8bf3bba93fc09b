import { closedError } from '../../model/closed-error.ts'
import { numberArray, textArray } from '../../sql/pg-array.ts'
import { pgFault } from '../../sql/pg-fault.ts'
import { AGEING_MS } from '../../transport/ageing.ts'
import { ownFault } from '../../transport/own-errors.ts'
import { openSubscriptions, type Subscriptions } from '../../transport/subscriptions.ts'
import type {
  QueueSpec,
  SubscribeOptions,
  Subscription,
  Transport,
} from '../../transport/transport.ts'
import { browse } from './browse.ts'
import { haltedKeys } from './halted-keys.ts'
import { send } from './send.ts'
import { shed } from './shed.ts'
import { shelf } from './shelf.ts'
import { needQueue, query, type Store } from './store.ts'
import { postgresSubscription } from './subscription.ts'
import { postgresTraits } from './traits.ts'
import { transactionFinder } from './transaction.ts'

export interface TransportParts {
  readonly store: Store
  readonly databaseId: string
  /** Of the database as it runs now; see `readIdentity`. */
  readonly identity: string
  /** See `Transport`. */
  readonly facts: readonly string[]
  /** Ends the waiting, then the connections. */
  readonly end: () => Promise<void>
}

export function postgresTransport({
  store,
  databaseId,
  identity,
  facts,
  end,
}: TransportParts): Transport {
  const subscriptions = openSubscriptions()
  const findTransaction = transactionFinder(store, identity)
  let closed: Promise<void> | undefined
  return {
    name: 'postgres',
    traits: postgresTraits,
    databaseId,
    facts,
    send: (queue, batch, options) => send(store, queue, batch, options),
    subscribe: (queue, options) => subscribe(store, subscriptions, queue, options),
    diagnose: (error) => ownFault(error) ?? pgFault(error),
    close() {
      closed ??= subscriptions.close().then(end)
      return closed
    },
    topology: { ensure: (queues, signal) => ensure(store, queues, signal) },
    browse: browse(store),
    shelf: shelf(store),
    shed: (queue, options) => shed(store, queue, options),
    haltedKeys: haltedKeys(store),
    transaction: (tx) =>
      store.closing.aborted ? Promise.reject(closedError('the transport')) : findTransaction(tx),
  }
}

async function subscribe(
  store: Store,
  subscriptions: Subscriptions,
  name: string,
  { leaseMs }: SubscribeOptions,
): Promise<Subscription> {
  const queueId = await needQueue(store, name)
  return subscriptions.open((onClose) => postgresSubscription({ store, queueId, leaseMs, onClose }))
}

async function ensure(
  store: Store,
  queues: readonly QueueSpec[],
  signal: AbortSignal,
): Promise<void> {
  // One row each: a statement cannot touch a row twice. The last one counts.
  const specs = [...new Map(queues.map((spec) => [spec.name, spec])).values()]
  if (specs.length === 0) return
  const params = [
    textArray(specs.map(({ name }) => name)),
    textArray(specs.map(({ owner }) => owner)),
    numberArray(specs.map(({ maxDepth }) => maxDepth ?? null)),
    textArray(specs.map(({ onDead = 'continue' }) => onDead)),
    numberArray(specs.map(({ ageingMs = AGEING_MS }) => ageingMs)),
  ]
  await query(store, store.sql.ENSURE_QUEUES, params, { signal })
}
