import type { Delivery } from '../../model/delivery.ts'
import type { AmqpMessage } from './amqp-shapes.ts'

/** A message of a lane that the broker has given to us. */
export interface LaneEntry {
  readonly message: AmqpMessage
  /** What was read of it when it came; stays the same however often it is handed out here. */
  readonly read: Pick<Delivery, 'envelope' | 'idIsPassing' | 'sentAt' | 'deliveries'>
  readonly cameAt: number
  state: 'waiting' | 'running' | 'ending' | 'held'
  /** Times it was handed out here. */
  handed: number
}

/** What one consumer has of a lane, in the order in which it came; an entry keeps its place until it is done. */
export interface LaneLine {
  add(entry: LaneEntry): void
  /** Of each key the first one, if it waits; up to `max`. */
  take(max: number): readonly LaneEntry[]
  /** It is done. */
  remove(entry: LaneEntry): void
  /** Whether something runs, or is on its way out. */
  isBusy(): boolean
  /** Whether something that failed waits for its moment. */
  isHolding(): boolean
  /** When the first one came that is still here. */
  since(): number | undefined
}

export function laneLine(): LaneLine {
  const entries = new Set<LaneEntry>()
  return {
    add: (entry) => void entries.add(entry),
    take(max) {
      const taken: LaneEntry[] = []
      const seen = new Set<string>()
      for (const entry of entries) {
        if (taken.length >= max) break
        const { orderingKey } = entry.read.envelope
        const isBehind = orderingKey !== undefined && seen.has(orderingKey)
        if (orderingKey !== undefined) seen.add(orderingKey)
        if (isBehind || entry.state !== 'waiting') continue
        entry.state = 'running'
        entry.handed += 1
        taken.push(entry)
      }
      return taken
    },
    remove: (entry) => void entries.delete(entry),
    isBusy: () => [...entries].some(({ state }) => state === 'running' || state === 'ending'),
    isHolding: () => [...entries].some(({ state }) => state === 'held'),
    since: () => entries.values().next().value?.cameAt,
  }
}
