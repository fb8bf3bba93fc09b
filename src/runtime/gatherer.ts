import type { Clock } from '../model/clock.ts'

/**
 * Gathers concurrent calls into batches without a timer: the first call flushes in the same turn, and what arrives
 * while a flush is under way goes with the next one. Idle, a call waits for nothing; busy, batches grow by themselves.
 */
export interface Gatherer<T, R> {
  add(item: T): Promise<R>
  /**
   * The same without a promise, for what is done once per message: one of the two is called, never before this returns.
   * `reject` may be left out where `flush` never rejects.
   */
  put(item: T, resolve: (result: R) => void, reject?: (error: unknown) => void): void
  /** Items that wait or are under way. */
  readonly size: number
}

export interface GathererOptions<T, R> {
  readonly maxBatch: number
  /** One result per item, in order. A rejection is given to every item of the batch. */
  readonly flush: (items: readonly T[]) => Promise<readonly R[]>
  /** Absent: one flush after another, however long one takes. */
  readonly patience?: Patience
}

/** A flush that takes longer keeps no later item waiting: the next one goes beside it. */
export interface Patience {
  readonly clock: Clock
  readonly ms: number
  /** The most side by side. */
  readonly flights: number
}

interface Waiting<T, R> {
  readonly item: T
  readonly resolve: (result: R) => void
  readonly reject: ((error: unknown) => void) | undefined
}

export function gatherer<T, R>(options: GathererOptions<T, R>): Gatherer<T, R> {
  let waiting: Waiting<T, R>[] = []
  let flying = 0
  let armed = false
  const flights = new Set<Promise<void>>()

  const flushAll = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch =
        waiting.length <= options.maxBatch ? waiting : waiting.slice(0, options.maxBatch)
      waiting = batch === waiting ? [] : waiting.slice(options.maxBatch)
      flying += batch.length
      const flight = flushOne(batch, options.flush).finally(() => {
        flying -= batch.length
        flights.delete(flight)
      })
      flights.add(flight)
      await ended(flight, flights, options.patience)
    }
    armed = false
  }

  const put: Gatherer<T, R>['put'] = (item, resolve, reject) => {
    waiting.push({ item, resolve, reject })
    if (armed) return
    armed = true
    queueMicrotask(() => void flushAll())
  }

  return {
    add: (item) => new Promise((resolve, reject) => put(item, resolve, reject)),
    put,
    get size() {
      return waiting.length + flying
    },
  }
}

/** This flight has ended, or takes too long and there is room for another one beside it. */
async function ended(
  flight: Promise<void>,
  flights: ReadonlySet<Promise<void>>,
  patience: Patience | undefined,
): Promise<void> {
  if (patience === undefined) return flight
  await new Promise<void>((resolve) => {
    const cancel = patience.clock.after(patience.ms, resolve)
    void flight.then(() => {
      cancel()
      resolve()
    })
  })
  if (flights.size >= patience.flights) await Promise.race(flights)
}

async function flushOne<T, R>(
  batch: readonly Waiting<T, R>[],
  flush: GathererOptions<T, R>['flush'],
): Promise<void> {
  let results: readonly R[]
  try {
    results = await flush(batch.map((waiting) => waiting.item))
    if (results.length !== batch.length) {
      throw new Error(`asked for ${batch.length} results, got ${results.length}`)
    }
  } catch (error) {
    for (const waiting of batch) waiting.reject?.(error)
    return
  }
  for (let i = 0; i < batch.length; i++) batch[i]?.resolve(results[i] as R)
}
