import { openSubscriptions, type Subscriptions } from '../../transport/subscriptions.ts'
import type { SubscribeOptions, Subscription, Transport } from '../../transport/transport.ts'
import type { Broker } from './broker.ts'
import { rabbitFault } from './fault.ts'
import { placeOf } from './names.ts'
import { orderedTransport } from './ordered.ts'
import { openPublisher } from './publisher.ts'
import { readyGauge } from './ready-gauge.ts'
import { ofQueue, sender } from './send.ts'
import { rabbitSubscription } from './subscription.ts'
import { topology } from './topology.ts'
import { rabbitTraits } from './traits.ts'
import { unseenFacts } from './unseen.ts'

export function rabbitTransport(broker: Broker, end: () => Promise<void>): Transport {
  const { options, server, publishing, consuming } = broker
  const subscriptions = openSubscriptions()
  const traits = rabbitTraits(options, server)
  const delays = traits.delay !== 'none'
  const bounds = { ...traits, delayPrefix: options.delayPrefix }
  const publisher = openPublisher(broker)
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => {
    closed ??= subscriptions.close().then(end)
    return closed
  }
  return {
    name: 'rabbitmq',
    traits,
    databaseId: undefined,
    send: sender(broker, publisher, bounds, ofQueue(options)),
    subscribe: (queue, how) => subscribe(broker, subscriptions, queue, how),
    diagnose: rabbitFault,
    close,
    problems: () =>
      [consuming.problem(), publishing.problem()].filter((problem) => problem !== undefined),
    facts: unseenFacts(options, delays),
    ...(options.queueType === 'quorum' && {
      ordered: orderedTransport({ broker, publisher, subscriptions, close }),
    }),
    topology: topology(broker, delays),
    browse: {
      gauge: (name) => readyGauge(broker, name, [placeOf(options, name).queue]),
    },
  }
}

async function subscribe(
  broker: Broker,
  subscriptions: Subscriptions,
  name: string,
  { maxInFlight }: SubscribeOptions,
): Promise<Subscription> {
  const { queue } = placeOf(broker.options, name)
  return subscriptions.openLater((onClose) =>
    rabbitSubscription({ broker, name, queue, maxInFlight, onClose }),
  )
}
