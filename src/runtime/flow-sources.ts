import { type Breakers, breakers } from '../flow/breakers.ts'
import { type ConcurrencyLimiter, concurrencyLimiter } from '../flow/concurrency-limiter.ts'
import { resetEverywhere } from '../flow/consumer-switch.ts'
import type { Measure } from '../flow/measure.ts'
import type { Meter } from '../flow/meter.ts'
import { processBuckets } from '../flow/process-share.ts'
import type { QueueFlow } from '../flow/queue-flow.ts'
import { type RateLimiter, rateLimiter } from '../flow/rate-limiter.ts'
import type { QueueSight } from '../flow/slot-control.ts'
import { backendError } from '../model/backend-error.ts'
import type { Clock } from '../model/clock.ts'
import { processSlots } from '../store/process-slots.ts'
import type { Store } from '../store/store.ts'
import type { Transport } from '../transport/transport.ts'
import type { ResolvedOptions } from './millrace-options.ts'
import type { AnyQueue } from './queue.ts'
import type { ResumeStore } from './resume-store.ts'
import { GRACE_MS, leaseMsOf } from './worker-deps.ts'

/** What the number of handlers follows. A backend that cannot be browsed says nothing of it. */
export async function sightOf(transport: Transport, queue: string): Promise<QueueSight> {
  const gauge = await transport.browse?.gauge(queue)
  return { ageMs: gauge?.ageMs, depth: gauge?.depth }
}

export async function measureOf(
  meter: Meter,
  store: Store | undefined,
): Promise<{ readonly fleet: Measure | undefined; readonly own: Measure | undefined }> {
  try {
    return { fleet: await meter.fleet(), own: meter.own() }
  } catch (cause) {
    throw storeError(cause, store)
  }
}

/** Lets consumers that their kill switch stopped go on: here at once, elsewhere through the store. False when none is known. */
export async function resumedConsumers(
  queue: string,
  flow: QueueFlow | undefined,
  resumes: Pick<ResumeStore, 'tell'>,
  clock: Clock,
): Promise<boolean> {
  const here = flow?.reset() ?? false
  const store = await resumes.tell()
  if (store === undefined) return here
  try {
    await resetEverywhere(store, queue, clock.now())
    return true
  } catch (cause) {
    throw storeError(cause, store)
  }
}

/** What a client of the store threw, as an error of ours. What flow asks of a store may be asked again. */
export function storeError(cause: unknown, store: Store | undefined): unknown {
  if (store === undefined) return cause
  return backendError({ ...store.diagnose(cause), cause }, { where: 'the store', reads: true })
}

export function breakersOf(
  queue: AnyQueue,
  { clock, random, logger }: Pick<ResolvedOptions, 'clock' | 'random' | 'logger'>,
  store: Store | undefined,
  closed: AbortSignal,
): Breakers | undefined {
  const { breaker, name } = queue
  if (breaker === undefined) return undefined
  const share = breaker.scope === 'store' ? store : undefined
  return breakers({ queue: name, settings: breaker, clock, random, logger, store: share, closed })
}

export function limiterOf(
  queue: AnyQueue,
  { clock, logger }: Pick<ResolvedOptions, 'clock' | 'logger'>,
  store: Store | undefined,
): RateLimiter | undefined {
  const { rateLimit, name } = queue
  if (rateLimit === undefined) return undefined
  const shared = rateLimit.scope === 'store' ? store?.buckets : undefined
  const buckets = shared ?? processBuckets(clock)
  return rateLimiter({ ...rateLimit, queue: name, buckets, clock, logger })
}

export function concurrencyLimiterOf(
  queue: AnyQueue,
  { clock, random, logger }: Pick<ResolvedOptions, 'clock' | 'random' | 'logger'>,
  store: Store | undefined,
): ConcurrencyLimiter | undefined {
  const { concurrencyLimit, name } = queue
  if (concurrencyLimit === undefined) return undefined
  const shared = concurrencyLimit.scope === 'store' ? store?.slots : undefined
  let fence = 0n
  const nextFence = (): bigint => {
    fence += 1n
    return fence
  }
  return concurrencyLimiter({
    ...concurrencyLimit,
    queue: name,
    slots: shared ?? processSlots(clock, new Map(), nextFence),
    lease: shared && { ownMs: leaseMsOf(queue), graceMs: GRACE_MS },
    clock,
    random,
    logger,
  })
}
