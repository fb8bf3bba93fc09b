import { depthLimit } from '../flow/capacity.ts'
import { QueueFullError } from '../model/errors.ts'
import type { Transport } from '../transport/transport.ts'
import type { CapacityChoice } from './capacity-choice.ts'
import type { DrainRate } from './drain-rate.ts'
import { levelsOf } from './levels-of.ts'
import type { AnyQueue } from './queue.ts'

/** How many messages a queue may hold for a send, by its priority. */
export interface Watermarks {
  limitFor(priority: number): number
  /** What a send gets that found as many as its limit. */
  refusal(limit: number, priority: number): QueueFullError
}

export interface WatermarksContext {
  readonly queue: AnyQueue
  readonly transport: Pick<Transport, 'traits'>
  readonly drain: DrainRate
}

export function watermarks(
  capacity: Exclude<CapacityChoice, 'unbounded'>,
  { queue, transport, drain }: WatermarksContext,
): Watermarks {
  const { maxDepth } = capacity
  const watermark = capacity.whenFull === 'reject' ? capacity.watermark : 1
  const limits = { maxDepth, watermark, levels: levelsOf(queue, transport) }
  return {
    limitFor: (priority) => depthLimit(priority, limits),
    refusal: (limit, priority) =>
      new QueueFullError(
        queue.name,
        limit,
        drain.retryAfterMs(limit),
        limit < maxDepth ? priority : undefined,
      ),
  }
}
