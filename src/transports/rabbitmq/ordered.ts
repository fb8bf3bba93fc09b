import { inKeyOrder } from '../../transport/in-key-order.ts'
import type { Subscriptions } from '../../transport/subscriptions.ts'
import type { SubscribeOptions, Subscription, Transport } from '../../transport/transport.ts'
import type { Broker } from './broker.ts'
import { rabbitFault } from './fault.ts'
import { laneFor, lanePlaceOf } from './lane-place.ts'
import { laneSubscription } from './lane-subscription.ts'
import { laneTopology } from './lane-topology.ts'
import type { Publisher } from './publisher.ts'
import { readyGauge } from './ready-gauge.ts'
import { sender } from './send.ts'
import { laneTraits } from './traits.ts'

/** What it shares with the transport of queues without order. */
export interface OrderedParts {
  readonly broker: Broker
  readonly publisher: Publisher
  readonly subscriptions: Subscriptions
  /** Of both. */
  readonly close: () => Promise<void>
}

/** Queues that keep order: each is a set of lanes. */
export function orderedTransport(parts: OrderedParts): Transport {
  const { broker, publisher, subscriptions, close } = parts
  const { options, server } = broker
  const traits = laneTraits(options, server)
  const bounds = { ...traits, delayPrefix: options.delayPrefix }
  const send = sender(broker, publisher, bounds, (name) => {
    const place = lanePlaceOf(options, name)
    return (envelope) => laneFor(place, envelope)
  })
  return {
    name: 'rabbitmq',
    traits,
    databaseId: undefined,
    // The leader of a lane may refuse one message and take the next.
    send: (queue, batch, how) => inKeyOrder(batch, (some) => send(queue, some, how), rabbitFault),
    subscribe: (queue, how) => subscribe(broker, subscriptions, queue, how),
    diagnose: rabbitFault,
    close,
    topology: laneTopology(broker),
    browse: {
      gauge: (name) => readyGauge(broker, name, lanePlaceOf(options, name).lanes),
    },
  }
}

async function subscribe(
  broker: Broker,
  subscriptions: Subscriptions,
  name: string,
  { maxInFlight }: SubscribeOptions,
): Promise<Subscription> {
  return subscriptions.openLater((onClose) =>
    laneSubscription({
      ...{ broker, name, maxInFlight, onClose },
      place: lanePlaceOf(broker.options, name),
    }),
  )
}
