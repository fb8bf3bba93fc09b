import { pause } from '../../model/clock.ts'
import { closedError } from '../../model/closed-error.ts'
import { openSubscriptions } from '../../transport/subscriptions.ts'
import type { SubscribeOptions, Subscription, Transport } from '../../transport/transport.ts'
import { browse } from './browse.ts'
import { sqsFault } from './faults.ts'
import { send } from './send.ts'
import type { Store } from './store.ts'
import { sqsSubscription } from './subscription.ts'
import { ensure, type TopologyMode, topologyDifferences } from './topology.ts'
import { fifoTraits, standardTraits } from './traits.ts'

export interface TransportParts {
  readonly store: Store
  readonly topology: TopologyMode
  /** Receives end, sends are refused. */
  readonly begin: () => void
  /** Ends every call, then the client. */
  readonly end: () => void
}

/** How long a close waits for long polls under way: what such a poll takes after that comes back when its lease ends. */
const LINGER_MS = 500

export function sqsTransport({ store, topology, begin, end }: TransportParts): Transport {
  const subscriptions = openSubscriptions()
  const lingering = new Set<Promise<unknown>>()
  const linger = (running: Promise<unknown>): void => {
    const done = (): void => void lingering.delete(running)
    lingering.add(running)
    running.then(done, done)
  }
  const subscribe = async (queue: string, { leaseMs }: SubscribeOptions): Promise<Subscription> => {
    if (store.closing.aborted) throw closedError('the transport')
    const { url } = await store.places.of(queue)
    return subscriptions.open((onClose) =>
      sqsSubscription({ store, queue, url, leaseMs, linger, onClose }),
    )
  }
  const closeAll = async (): Promise<void> => {
    begin()
    await subscriptions.close()
    const settled = Promise.allSettled(lingering)
    const ended = new AbortController()
    await Promise.race([settled, pause(store.clock, LINGER_MS, ended.signal)])
    ended.abort()
    end()
  }
  let closed: Promise<void> | undefined
  return {
    name: 'sqs',
    traits: store.kind === 'fifo' ? fifoTraits : standardTraits,
    databaseId: undefined,
    send: (queue, batch, options) => send(store, queue, batch, options),
    subscribe,
    diagnose: sqsFault,
    close() {
      closed ??= closeAll()
      return closed
    },
    problems: () =>
      [...store.overLimit].map(
        (queue) =>
          `SQS hands out nothing more of queue "${queue}": too many messages are in flight`,
      ),
    topology: {
      ensure: (queues, signal) => ensure(store, topology, queues, signal),
      differences: (queues, signal) => topologyDifferences(store, topology, queues, signal),
    },
    browse: browse(store),
  }
}
