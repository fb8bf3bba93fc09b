import { closedError } from '../../model/closed-error.ts'
import { ownFault, unknownQueueError } from '../../transport/own-errors.ts'
import { openSubscriptions, type Subscriptions } from '../../transport/subscriptions.ts'
import type { SubscribeOptions, Subscription, Transport } from '../../transport/transport.ts'
import { browse } from './browse.ts'
import { natsFault } from './faults.ts'
import { lanesIn, sourcesOf } from './lane.ts'
import { millis } from './nanos.ts'
import { send } from './send.ts'
import { shelf } from './shelf.ts'
import { queueNames, type Store } from './store.ts'
import { natsSubscription } from './subscription.ts'
import { differences, ensure, orMissing } from './topology.ts'

export interface TransportParts {
  readonly store: Store
  /** Sentences about the connection, for `health()`. */
  readonly problems: () => readonly string[]
  /** Ends the waiting, then the connection. */
  readonly end: () => Promise<void>
}

export function natsTransport({ store, problems, end }: TransportParts): Transport {
  const subscriptions = openSubscriptions()
  let closed: Promise<void> | undefined
  return {
    name: 'nats',
    traits: store.traits,
    databaseId: undefined,
    send: (queue, batch, options) => send(store, queue, batch, options),
    subscribe: (queue, options) => subscribe(store, subscriptions, queue, options),
    diagnose: (error) => ownFault(error) ?? natsFault(error),
    close() {
      closed ??= subscriptions.close().then(end)
      return closed
    },
    problems,
    topology: {
      ensure: (queues, signal) => ensure(store, queues, signal),
      differences: (queues, signal) => differences(store, queues, signal),
    },
    browse: browse(store),
    shelf: shelf(store),
  }
}

async function subscribe(
  store: Store,
  subscriptions: Subscriptions,
  queue: string,
  { leaseMs }: SubscribeOptions,
): Promise<Subscription> {
  if (store.closing.aborted) throw closedError('the transport')
  const names = queueNames(store, queue)
  const { manager } = store.client
  const stream = await orMissing(manager.streams.info(names.stream))
  if (stream === undefined) throw unknownQueueError(queue)
  const sources = sourcesOf(names, lanesIn(names, stream.config.subjects))
  const consumers = await Promise.all(
    sources.map((source) => orMissing(manager.consumers.info(source.stream, source.consumer))),
  )
  const ackWaits = consumers.map((consumer) => {
    if (consumer === undefined) throw unknownQueueError(queue)
    return millis(consumer.config.ack_wait)
  })
  const ackWaitMs = Math.min(...ackWaits)
  const streamMadeAt = Date.parse(stream.created)
  return subscriptions.open((onClose) =>
    natsSubscription({ store, names, sources, leaseMs, ackWaitMs, streamMadeAt, onClose }),
  )
}
