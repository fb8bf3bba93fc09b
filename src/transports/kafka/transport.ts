import { MillraceError } from '../../model/errors.ts'
import { openSubscriptions } from '../../transport/subscriptions.ts'
import type { Transport } from '../../transport/transport.ts'
import { browse } from './browse.ts'
import type { Cluster } from './client.ts'
import { kafkaFault } from './fault.ts'
import { letters } from './letters.ts'
import { send } from './send.ts'
import { kafkaSubscription, type Opened } from './subscription.ts'
import { ensureDeadTopic, topology } from './topology.ts'
import { kafkaTraits } from './traits.ts'

export function kafkaTransport(
  cluster: Cluster,
  isReplicated: boolean,
  end: () => Promise<void>,
): Transport {
  const traits = kafkaTraits(cluster.options.maxMessageBytes, isReplicated)
  const subscriptions = openSubscriptions<Opened>()
  let closed: Promise<void> | undefined
  const facts: string[] = []
  const dead = letters(cluster, async (queue) => {
    const { problems } = await ensureDeadTopic(cluster, queue, cluster.closing)
    const [problem] = problems
    if (problem !== undefined) throw new MillraceError('MILLRACE_UNAVAILABLE', problem)
  })
  return {
    name: 'kafka',
    traits,
    databaseId: undefined,
    ...(cluster.options.retry !== undefined && { retry: cluster.options.retry }),
    ...(cluster.options.deadLetters === 'topic' && { letters: dead.shelf }),
    topology: topology(cluster, facts),
    facts,
    browse: browse(cluster),
    diagnose: kafkaFault,
    problems: () => [...subscriptions.all().flatMap((one) => one.problems()), ...dead.problems()],
    send: (queue, batch, options) => send(cluster, traits, queue, batch, options),
    subscribe: (queue) =>
      subscriptions.openLater((onClose) => kafkaSubscription(cluster, queue, onClose)),
    close() {
      closed ??= subscriptions.close().then(end)
      return closed
    },
  }
}
