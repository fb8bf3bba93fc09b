import { MillraceError, OptionsError } from '../../model/errors.ts'
import { redisFault } from '../../redis/fault.ts'
import { ownFault } from '../../transport/own-errors.ts'
import { openSubscriptions, type Subscriptions } from '../../transport/subscriptions.ts'
import type {
  QueueSpec,
  SubscribeOptions,
  Subscription,
  Transport,
} from '../../transport/transport.ts'
import { browse } from './browse.ts'
import { queueKeys } from './keys.ts'
import { scripts } from './script.ts'
import { send } from './send.ts'
import { shelf } from './shelf.ts'
import { needQueue, run, type Store } from './store.ts'
import { redisSubscription } from './subscription.ts'

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
    topology: { ensure: (queues, signal) => ensure(store, queues, signal) },
    browse: browse(store),
    shelf: shelf(store),
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

async function ensure(
  store: Store,
  queues: readonly QueueSpec[],
  signal: AbortSignal,
): Promise<void> {
  const found: string[] = []
  for (const { name, owner, maxDepth } of queues) {
    const keys = queueKeys(store.prefix, name)
    const args = [store.group, owner, maxDepth === undefined ? '' : String(maxDepth)]
    const answer = await run(store, scripts.ENSURE, keys, args, { signal })
    if (answer === 0) throw tooNew(name)
    if (answer === 1) store.queues.set(name, keys)
    else found.push(otherGroup(name, store.group, String(answer)))
  }
  if (found.length > 0) throw new OptionsError('redis', found)
}

function otherGroup(queue: string, group: string, other: string): string {
  return `queue "${queue}" is read by the consumer group "${other}", and with "${group}" as a second one each would remove what the other has not seen; pass group: '${other}' or another prefix, or remove the old group (XGROUP DESTROY)`
}

function tooNew(name: string): MillraceError {
  return new MillraceError(
    'MILLRACE_SCHEMA_TOO_NEW',
    `queue "${name}" was laid out in Redis by a newer version of millrace; update this one`,
    { fields: { queue: name } },
  )
}
