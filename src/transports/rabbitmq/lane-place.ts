import { crc32 } from 'node:zlib'
import type { Envelope } from '../../model/envelope.ts'
import { type Place, placeOf } from './names.ts'
import type { Resolved } from './options.ts'

/** Where a queue that keeps order is on the broker: its lanes, and a roster beside them. */
export interface LanePlace {
  /** The name of the whole. No queue of the broker has it. */
  readonly base: string
  /** Queues of the broker, by number. */
  readonly lanes: readonly string[]
  /** Says how many lanes there are, and has a consumer for each subscription that asks. Nothing is sent to it. */
  readonly roster: string
}

export function lanePlaceOf(options: Resolved, name: string): LanePlace {
  const { queue: base } = placeOf(options, name)
  const own = Object.hasOwn(options.queues, name) ? options.queues[name] : undefined
  const count = own?.lanes ?? options.lanes
  return {
    base,
    lanes: Array.from({ length: count }, (_, number) => laneName(base, number)),
    roster: `${base}.lanes`,
  }
}

export function laneName(base: string, number: number): string {
  return `${base}.lane.${number}`
}

/**
 * The lane of a message: CRC-32 (of zlib, of the key in UTF-8) modulo the number of lanes, so that any language can do it with
 * what it has. A message without a key has no order to keep, and goes by its id.
 */
export function laneFor(
  { base, lanes }: LanePlace,
  { orderingKey, id }: Pick<Envelope, 'orderingKey' | 'id'>,
): Place {
  const queue = laneName(base, crc32(orderingKey ?? id) % lanes.length)
  return { queue, exchange: '', routingKey: queue }
}
