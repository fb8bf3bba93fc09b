/** How many messages a queue may hold for whom. */
export interface DepthLimits {
  readonly maxDepth: number
  /** Share of `maxDepth` up to which the lowest priority is taken, above 0 to 1. 1: all priorities up to `maxDepth`. */
  readonly watermark: number
  /** So many priorities there are, 0 the lowest. */
  readonly levels: number
}

/**
 * How many messages may be there for one of this priority to be taken: `watermark` of `maxDepth` for the lowest, all of it for the
 * highest, and even steps between. So of a queue that cannot remove what it has, what matters most is refused last.
 */
export function depthLimit(priority: number, { maxDepth, watermark, levels }: DepthLimits): number {
  const steps = levels - 1
  if (watermark === 1 || priority >= steps) return maxDepth
  return Math.max(1, Math.floor(maxDepth * (watermark + ((1 - watermark) * priority) / steps)))
}

/** Of a sender that met a full queue. */
export interface RetryAfter {
  readonly maxDepth: number
  /** Messages that leave the queue, per second; 0 when none is known to. */
  readonly perSecond: number
  /** The longest that a sender is sent away for, and as long as nothing leaves, in ms. */
  readonly maxMs: number
}

/** Sooner there is hardly room for it and the others that were refused. */
const RETRY_MIN_MS = 1_000
/** Room for so much of the queue is worth another try. */
const ROOM = 1 / 100

/** When it should come back, in ms: once a hundredth of the queue has left. */
export function retryAfterMs({ maxDepth, perSecond, maxMs }: RetryAfter): number {
  if (perSecond === 0) return maxMs
  const room = Math.max(1, maxDepth * ROOM)
  return Math.round(Math.min(maxMs, Math.max(RETRY_MIN_MS, (1_000 * room) / perSecond)))
}
