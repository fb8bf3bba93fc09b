import type { Clock } from '../model/clock.ts'
import type { Sent } from '../model/delivery.ts'
import type { Envelope } from '../model/envelope.ts'
import { AGEING_MS } from '../transport/ageing.ts'
import { asFaults, refused } from '../transport/outcomes.ts'
import type {
  QueueSpec,
  SendOptions,
  SubscribeOptions,
  Subscription,
  Transport,
} from '../transport/transport.ts'
import { byGroup } from './by-group.ts'
import { levelledBrowse } from './levelled-browse.ts'
import { levelledShelf } from './levelled-shelf.ts'
import { levelledSubscription } from './levelled-subscription.ts'
import { type Levels, levelQueue, levelQueues } from './levels.ts'
import { withDelay } from './ready-since.ts'

export interface PrioritiesOptions {
  /** The most levels that a queue names, 2 to 10. */
  readonly most: number
  readonly clock: Clock
}

/**
 * Priorities with ageing for brokers that have none: a queue that names its levels has a queue of the broker for each, and a consumer
 * takes from all of them in the order of ageing. Other queues are left as they are.
 */
export function priorities(inner: Transport, { most, clock }: PrioritiesOptions): Transport {
  /** One entry for each queue of the app with levels. */
  const known = new Map<string, Levels>()
  const placesOf = (queue: string): readonly string[] =>
    levelQueues(queue, known.get(queue)?.count ?? 1)
  const { browse, shelf, topology } = inner
  const learn = (queues: readonly QueueSpec[]): readonly QueueSpec[] => {
    for (const { name, priorities: count = 1, ageingMs = AGEING_MS } of queues) {
      if (count > 1) known.set(name, { count, ageingMs })
    }
    return queues.flatMap(specsOf)
  }
  return {
    ...inner,
    traits: { ...inner.traits, priorities: most, prioritiesBy: 'queues', capacity: 'sampled' },
    topology: {
      ...topology,
      ensure: (queues, signal) => topology.ensure(learn(queues), signal),
      ...(topology.differences && {
        differences: async (queues, signal) =>
          (await topology.differences?.(learn(queues), signal)) ?? [],
      }),
    },
    send: (queue, batch, options) => {
      const levels = known.get(queue)
      if (levels === undefined) return inner.send(queue, batch, options)
      return sendByLevel(inner, { queue, clock, count: levels.count }, batch, options)
    },
    subscribe: async (queue, options) => {
      const levels = known.get(queue)
      if (levels === undefined) return inner.subscribe(queue, options)
      return levelledSubscription({
        levels: await subscribeAll(inner, placesOf(queue), options),
        ...{ ageingMs: levels.ageingMs, leaseMs: options.leaseMs, clock },
        diagnose: inner.diagnose,
      })
    },
    ...(browse && { browse: levelledBrowse(browse, placesOf) }),
    ...(shelf && { shelf: levelledShelf(shelf, placesOf) }),
  }
}

/** Each of them bounded as the whole: where the backend counts, none of them outgrows it. */
function specsOf({ priorities: count = 1, ...spec }: QueueSpec): readonly QueueSpec[] {
  if (count === 1) return [spec]
  const { ageingMs: _, ...rest } = spec
  return levelQueues(spec.name, count).map((name) => ({ ...rest, name }))
}

async function subscribeAll(
  inner: Transport,
  places: readonly string[],
  options: SubscribeOptions,
): Promise<readonly Subscription[]> {
  const opened = await Promise.allSettled(places.map((place) => inner.subscribe(place, options)))
  const open = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const failed = opened.find((one) => one.status === 'rejected')
  if (failed === undefined) return open
  await Promise.all(open.map((one) => one.close().catch(() => undefined)))
  throw failed.reason
}

interface Levelled {
  readonly queue: string
  readonly count: number
  readonly clock: Clock
}

async function sendByLevel(
  inner: Transport,
  { queue, count, clock }: Levelled,
  batch: readonly Envelope[],
  options: SendOptions,
): Promise<readonly Sent[]> {
  const levelOf = ({ priority }: Envelope): number | undefined =>
    Number.isInteger(priority) && priority >= 0 && priority < count ? priority : undefined
  // Queues of a broker are not stored to together.
  const isTorn = options.atomic === true && new Set(batch.map(levelOf)).size > 1
  return byGroup(batch, levelOf, async (level, some, isAll) => {
    if (level === undefined || isTorn) return some.map(() => refused('invalid'))
    const now = clock.now()
    const inward = some.map((one) => ({ ...withDelay(one, now), priority: 0 }))
    const sending = inner.send(levelQueue(queue, level), inward, options)
    // What the other levels stored must not be forgotten with it.
    return isAll ? sending : sending.catch(asFaults(inner.diagnose, some.length))
  })
}
