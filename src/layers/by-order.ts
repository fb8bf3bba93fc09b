import type { Browse, QueueSpec, Shelf, Transport } from '../transport/transport.ts'

/**
 * One transport of two for the same backend: what a queue does goes to the one that its spec asked for. Which queues have an order
 * is known from `topology`, where every app names its queues first. Both bring the same abilities, and close each other.
 */
export function byOrder(plain: Transport, ordered: Transport): Transport {
  const inOrder = new Set<string>()
  const of = (queue: string): Transport => (inOrder.has(queue) ? ordered : plain)
  const learn = (queues: readonly QueueSpec[]): void => {
    for (const { name, ordered: isOrdered } of queues) {
      if (isOrdered) inOrder.add(name)
      else inOrder.delete(name)
    }
  }
  const { browse, shelf } = plain
  return {
    ...plain,
    ordered,
    send: (queue, batch, options) => of(queue).send(queue, batch, options),
    subscribe: (queue, options) => of(queue).subscribe(queue, options),
    close: async () => {
      await Promise.all([ordered.close(), plain.close()])
    },
    topology: {
      async ensure(queues, signal) {
        learn(queues)
        await plain.topology.ensure(withoutOrder(queues), signal)
        await ordered.topology.ensure(withOrder(queues), signal)
      },
      async differences(queues, signal) {
        learn(queues)
        return [
          ...((await plain.topology.differences?.(withoutOrder(queues), signal)) ?? []),
          ...((await ordered.topology.differences?.(withOrder(queues), signal)) ?? []),
        ]
      },
    },
    ...(browse && { browse: routedBrowse((queue) => of(queue).browse ?? browse, browse) }),
    ...(shelf && { shelf: routedShelf((queue) => of(queue).shelf ?? shelf) }),
  }
}

function withOrder(queues: readonly QueueSpec[]): readonly QueueSpec[] {
  return queues.filter(({ ordered }) => ordered)
}

function withoutOrder(queues: readonly QueueSpec[]): readonly QueueSpec[] {
  return queues.filter(({ ordered }) => !ordered)
}

function routedBrowse(of: (queue: string) => Browse, { setPaused }: Browse): Browse {
  return {
    gauge: (queue) => of(queue).gauge(queue),
    ...(setPaused && {
      setPaused: (queue, paused) => (of(queue).setPaused ?? setPaused)(queue, paused),
    }),
  }
}

function routedShelf(of: (queue: string) => Shelf): Shelf {
  return {
    list: (queue, options) => of(queue).list(queue, options),
    get: (queue, id) => of(queue).get(queue, id),
    count: (queue, filter) => of(queue).count(queue, filter),
    redrive: (queue, ids, audit) => of(queue).redrive(queue, ids, audit),
    discard: (queue, ids, audit) => of(queue).discard(queue, ids, audit),
    audit: (queue, limit) => of(queue).audit(queue, limit),
  }
}
