import type { Resolved } from './options.ts'

/** Where a queue of ours is on the broker. */
export interface Place {
  readonly queue: string
  /** Empty: the default exchange, which every queue is bound to by its name. */
  readonly exchange: string
  readonly routingKey: string
}

export function placeOf({ prefix, queues }: Resolved, name: string): Place {
  const own = Object.hasOwn(queues, name) ? queues[name] : undefined
  const queue = own?.queue ?? `${prefix}${name}`
  const exchange = own?.exchange ?? ''
  return { queue, exchange, routingKey: own?.routingKey ?? queue }
}

/** To this queue and no other, whatever else its exchange feeds: the default exchange knows each queue by its name. */
export function straightTo({ queue }: Place): Place {
  return { queue, exchange: '', routingKey: queue }
}
