import { redisFault } from '../../redis/fault.ts'
import { ownFault } from '../../transport/own-errors.ts'
import { openSubscriptions, type Subscriptions } from '../../transport/subscriptions.ts'
import type { SubscribeOptions, Subscription, Transport } from '../../transport/transport.ts'
import { browse } from './browse.ts'
import { haltedKeys } from './halted-keys.ts'
import { send } from './send.ts'
import { shed } from './shed.ts'
import { shelf } from './shelf.ts'
import { needQueue, type Store } from './store.ts'
import { redisSubscription } from './subscription.ts'
import { differences, ensure } from './topology.ts'

export interface TransportParts {
  readonly store: Store
  readonly facts: readonly string[]
  readonly end: () => void
}

export function redisTransport({ store, facts, end }: TransportParts): Transport {
  const subscriptions = openSubscriptions()
  let closed: Promise<void> | undefined
  return {
    name: 'redis',
    traits: store.traits,
    databaseId: undefined,
    facts,
    send: (queue, batch, options) => send(store, queue, batch, options),
    subscribe: (queue, options) => subscribe(store, subscriptions, queue, options),
    diagnose: (error) => ownFault(error) ?? redisFault(error),
    close() {
      closed ??= subscriptions.close().then(end)
      return closed
    },
    topology: {
      ensure: (queues, signal) => ensure(store, queues, signal),
      differences: (queues, signal) => differences(store, queues, signal),
    },
    browse: browse(store),
    shelf: shelf(store),
    haltedKeys: haltedKeys(store),
    shed: (queue, options) => shed(store, queue, options),
  }
}

async function subscribe(
  store: Store,
  subscriptions: Subscriptions,
  name: string,
  { leaseMs }: SubscribeOptions,
): Promise<Subscription> {
  const queue = await needQueue(store, name)
  await store.ear.listenTo(queue.news, () => store.bell.ring(name))
  return subscriptions.open((onClose) =>
    redisSubscription({ store, name, queue, leaseMs, onClose }),
  )
}
