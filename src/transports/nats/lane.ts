import { crc32 } from 'node:zlib'
import type { QueueNames } from './names.ts'

/**
 * In which lane a key is: the CRC-32 of its UTF-8 bytes (the one of zlib, gzip and PNG, of which every language has a library),
 * modulo the number of lanes. Part of the wire: other programs publish by it, so it never changes.
 */
export function laneOf(orderingKey: string, lanes: number): number {
  return crc32(orderingKey) % lanes
}

/** One consumer of a queue, and what it takes. */
export interface Source {
  readonly queue: string
  readonly stream: string
  readonly consumer: string
  readonly subject: string
  /** Undefined: messages without an ordering key, any number of them at once. */
  readonly lane: number | undefined
}

/** All consumers of a queue with so many lanes; a queue without lanes has one. */
export function sourcesOf(names: QueueNames, lanes: number): readonly [Source, ...Source[]] {
  const { queue, stream, subject, consumer } = names
  const ofLanes = Array.from({ length: lanes }, (_, lane): Source => {
    const own = { subject: names.lane(lane, lanes), consumer: names.laneConsumer(lane) }
    return { queue, stream, ...own, lane }
  })
  return [{ queue, stream, subject, consumer, lane: undefined }, ...ofLanes]
}

/** How many lanes the subjects of a stream speak of; 0 for a queue without. */
export function lanesIn({ subject }: QueueNames, subjects: readonly string[]): number {
  const prefix = `${subject}.lane.`
  for (const one of subjects) {
    const count = one.startsWith(prefix) ? Number(one.slice(prefix.length).split('.')[0]) : 0
    if (Number.isSafeInteger(count) && count > 0) return count
  }
  return 0
}
