import { read } from '../model/probe.ts'
import { type Problems, show } from '../model/problems.ts'

/**
 * How much a queue may hold, and what a send does when it holds that. Ready, scheduled and in flight count; on RabbitMQ, which does not
 * tell what is in flight or in its own delays, the ready ones alone.
 */
export type CapacityOptions = RejectWhenFull | WaitWhenFull | ShedWhenFull | 'unbounded'

interface Bounded {
  /** Most messages, 1 to 1,000,000,000. Default 100,000. */
  readonly maxDepth: number
  /**
   * The most that `QueueFullError.retryAfterMs` says, and what it says while nothing leaves the queue, in ms; 1,000 to 86,400,000.
   * Default 60,000.
   */
  readonly retryAfterMaxMs?: number
}

export interface RejectWhenFull extends Bounded {
  /** The send fails at once with QueueFullError. The default. */
  readonly whenFull?: 'reject'
  /**
   * The share of `maxDepth` from which on sends of the lowest priority are refused, 0.1 to 1; those of the highest are at `maxDepth`,
   * those between at even steps. With `priorities`, where the backend cannot shed. Default 1: all alike.
   */
  readonly watermark?: number
}

export interface WaitWhenFull extends Bounded {
  /** The send waits for room, behind those that wait already; QueueFullError when there was none in `waitMs`. */
  readonly whenFull: 'wait'
  /** In ms, 1 to 3,600,000. */
  readonly waitMs: number
}

export interface ShedWhenFull extends Bounded {
  /**
   * The send makes room: of what waits the lowest priority goes, and of that the oldest; none with a higher priority than its own. On
   * memory, SQLite, Postgres and Redis. QueueFullError when nothing may go.
   */
  readonly whenFull: 'shed'
  /** What becomes of it: a dead letter of class `permanent`, or nothing but a count. Default `nowhere`. */
  readonly shedTo?: 'nowhere' | 'dead-letters'
}

/** With every default filled in. */
export type CapacityChoice =
  | {
      readonly maxDepth: number
      readonly retryAfterMaxMs: number
      readonly whenFull: 'reject'
      /** 1: all priorities alike. */
      readonly watermark: number
    }
  | {
      readonly maxDepth: number
      readonly retryAfterMaxMs: number
      readonly whenFull: 'wait'
      readonly waitMs: number
    }
  | {
      readonly maxDepth: number
      readonly retryAfterMaxMs: number
      readonly whenFull: 'shed'
      readonly shedTo: 'nowhere' | 'dead-letters'
    }
  | 'unbounded'

const RETRY_AFTER_MAX_MS = 60_000

/** Beyond a queue's own bound a backend may have one, so an unbounded queue has this figure, too. */
export function retryAfterMaxMs({ capacity }: { readonly capacity: CapacityChoice }): number {
  return capacity === 'unbounded' ? RETRY_AFTER_MAX_MS : capacity.retryAfterMaxMs
}

const WHEN_FULL = ['reject', 'wait', 'shed']

export function resolveCapacity(
  {
    capacity,
    orderingKey,
  }: { readonly capacity?: CapacityOptions | undefined; readonly orderingKey?: unknown },
  found: Problems,
): CapacityChoice {
  if (capacity === 'unbounded') return 'unbounded'
  const { maxDepth, retryAfterMaxMs } = boundsOf(capacity, found)
  const whenFull: unknown = read(capacity, 'whenFull') ?? 'reject'
  const waitMs: unknown = read(capacity, 'waitMs')
  const shedTo: unknown = read(capacity, 'shedTo')
  const watermark: unknown = read(capacity, 'watermark')
  if (waitMs !== undefined && whenFull !== 'wait') {
    found.add('capacity.waitMs: only with whenFull "wait"')
  }
  if (shedTo !== undefined && whenFull !== 'shed') {
    found.add('capacity.shedTo: only with whenFull "shed"')
  }
  if (watermark !== undefined && whenFull !== 'reject') {
    found.add('capacity.watermark: only with whenFull "reject"')
  }
  if (whenFull === 'wait') {
    const limits = { min: 1, max: 3_600_000 }
    return {
      maxDepth,
      retryAfterMaxMs,
      whenFull,
      waitMs: found.number('capacity.waitMs', waitMs, limits),
    }
  }
  if (whenFull === 'shed') {
    if (orderingKey !== undefined) {
      found.add(
        'capacity.whenFull: "shed" with orderingKey would leave gaps in a key; use "reject" or "wait"',
      )
    }
    if (shedTo !== undefined && shedTo !== 'nowhere' && shedTo !== 'dead-letters') {
      found.add(`capacity.shedTo: expected "nowhere" or "dead-letters", got ${show(shedTo)}`)
    }
    const kept = shedTo === 'dead-letters' ? shedTo : 'nowhere'
    return { maxDepth, retryAfterMaxMs, whenFull, shedTo: kept }
  }
  if (whenFull !== 'reject') {
    found.add(`capacity.whenFull: expected one of ${WHEN_FULL.join(', ')}, got ${show(whenFull)}`)
  }
  return { maxDepth, retryAfterMaxMs, whenFull: 'reject', watermark: share(watermark, found) }
}

function share(watermark: unknown, found: Problems): number {
  if (watermark === undefined) return 1
  if (typeof watermark === 'number' && watermark >= 0.1 && watermark <= 1) return watermark
  found.add(`capacity.watermark: expected a number from 0.1 to 1, got ${show(watermark)}`)
  return 1
}

function boundsOf(
  capacity: Exclude<CapacityOptions, 'unbounded'> | undefined,
  found: Problems,
): Bounded & { readonly retryAfterMaxMs: number } {
  if (typeof capacity === 'string') {
    found.add(`capacity: expected { maxDepth } or "unbounded", got ${show(capacity)}`)
  } else if (capacity !== undefined) {
    found.knownKeys(
      capacity,
      ['maxDepth', 'whenFull', 'waitMs', 'watermark', 'shedTo', 'retryAfterMaxMs'],
      'capacity',
    )
  }
  return {
    maxDepth: found.number('capacity.maxDepth', capacity?.maxDepth, {
      min: 1,
      max: 1_000_000_000,
      default: 100_000,
    }),
    retryAfterMaxMs: found.number('capacity.retryAfterMaxMs', capacity?.retryAfterMaxMs, {
      min: 1_000,
      max: 86_400_000,
      default: RETRY_AFTER_MAX_MS,
    }),
  }
}
