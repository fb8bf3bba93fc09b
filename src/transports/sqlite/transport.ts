import { closedError } from '../../model/closed-error.ts'
import type { Sent } from '../../model/delivery.ts'
import type { Envelope } from '../../model/envelope.ts'
import { sqliteFault } from '../../sql/sqlite-fault.ts'
import { prepared } from '../../sql/sqlite-handle.ts'
import { AGEING_MS } from '../../transport/ageing.ts'
import { allRefused, Undone } from '../../transport/atomic.ts'
import { ownFault } from '../../transport/own-errors.ts'
import { openSubscriptions, type Subscriptions } from '../../transport/subscriptions.ts'
import type { Traits } from '../../transport/traits.ts'
import type {
  QueueSpec,
  SendOptions,
  SubscribeOptions,
  Subscription,
  Transport,
} from '../../transport/transport.ts'
import { browse } from './browse.ts'
import { givePlaces } from './fair-places.ts'
import { haltedKeys } from './halted-keys.ts'
import { advanceLeaderless } from './keys.ts'
import { pruneKeys, storeBatch } from './send.ts'
import { shed } from './shed.ts'
import { shelf } from './shelf.ts'
import { ENSURE_QUEUE } from './statements.ts'
import { needQueue, type Store } from './store.ts'
import { sqliteSubscription } from './subscription.ts'
import { transactionOf } from './transaction.ts'

export function sqliteTransport(store: Store, traits: Traits, databaseId: string): Transport {
  const subscriptions = openSubscriptions()
  return {
    name: 'sqlite',
    traits,
    databaseId,
    send: (queue, batch, options) => send(store, queue, batch, options),
    subscribe: (queue, options) => subscribe(store, subscriptions, queue, options),
    diagnose: (error) => ownFault(error) ?? sqliteFault(error),
    async close() {
      await subscriptions.close()
      store.close()
    },
    topology: { ensure: (queues, signal) => ensure(store, queues, signal) },
    browse: browse(store),
    shelf: shelf(store),
    shed: (queue, options) => shed(store, queue, options),
    haltedKeys: haltedKeys(store),
    transaction(tx) {
      if (store.closing.aborted) throw closedError('the transport')
      return transactionOf(store, tx)
    },
  }
}

async function send(
  store: Store,
  queue: string,
  batch: readonly Envelope[],
  { signal, atomic = false }: SendOptions,
): Promise<readonly Sent[]> {
  if (batch.length === 0) return []
  const { handle, clock } = store
  try {
    const sent = await store.write(
      () => {
        const now = clock.now()
        pruneKeys(handle, now, batch)
        const stored = storeBatch(handle, now, queue, batch)
        const undone = atomic ? allRefused(stored.outcomes) : undefined
        if (undone) throw new Undone(undone)
        return stored
      },
      { signal },
    )
    if (sent.stored > 0) store.bell.ring(sent.queueId)
    return sent.outcomes
  } catch (error) {
    if (error instanceof Undone) return error.outcomes
    throw error
  }
}

async function subscribe(
  store: Store,
  subscriptions: Subscriptions,
  name: string,
  { leaseMs }: SubscribeOptions,
): Promise<Subscription> {
  const { id: queueId } = await store.read(() => needQueue(store.handle, name))
  return subscriptions.open((onClose) => sqliteSubscription({ store, queueId, leaseMs, onClose }))
}

async function ensure(
  store: Store,
  queues: readonly QueueSpec[],
  signal: AbortSignal,
): Promise<void> {
  if (queues.length === 0) return
  await store.write(
    () => {
      for (const { name, owner, maxDepth, onDead = 'continue', ageingMs = AGEING_MS } of queues) {
        prepared(store.handle, ENSURE_QUEUE).run(name, owner, maxDepth ?? null, onDead, ageingMs)
        // Version 1 of the schema knew no order: a process of it that still ran when this file was migrated moved nobody up.
        const { id } = needQueue(store.handle, name)
        advanceLeaderless(store.handle, id, store.clock.now())
        givePlaces(store.handle, id)
      }
    },
    { signal },
  )
}
