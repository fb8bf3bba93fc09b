import type { MaybePromise } from '../model/maybe-promise.ts'
import type { Transport } from '../transport/transport.ts'
import type { CapacityChoice } from './capacity-choice.ts'
import type { Departures } from './departures.ts'
import type { DrainRate } from './drain-rate.ts'
import type { AnyQueue } from './queue.ts'
import type { QueueTotal } from './queue-total.ts'
import { watermarks } from './watermarks.ts'

/**
 * Keeps a queue within its capacity where the backend does not count exactly (traits.capacity 'sampled'): the last
 * sampled total plus what this process sent since, less what its workers ended. Overshoot is bounded by what other processes send between two of
 * our samples (1 s when more than half full, else 5 s), and by what waits in transactions that are open during one.
 */
export interface Admission extends Departures {
  /** @throws MILLRACE_QUEUE_FULL before anything is sent. */
  admit(asked: Asked): MaybePromise<void>
  /**
   * Decides by the last sample, however old, and asks for another one: for a send that is part of a transaction. Before the first
   * sample all are admitted.
   */
  admitNow(asked: Asked): void
  /** Removes messages for new ones, and answers how many: as many are admitted next, whatever the last sample says. */
  makeRoom(remove: () => Promise<number>): Promise<number>
}

export interface Asked {
  readonly messages: number
  readonly priority: number
  /** Messages that were admitted and are not answered yet. */
  readonly onTheWay: number
}

const SAMPLE_FULL_MS = 200
/**
 * Where somebody waits for room, or others go for want of it: as soon as this, unless a sample takes long, so that it keeps the backend
 * busy for a tenth of the time at most. What a queue holds that can be counted so fast, workers handle between two samples.
 */
const SAMPLE_SOON_MS = 10
const REST_PER_SAMPLE = 9
const SAMPLE_NEAR_MS = 1_000
const SAMPLE_FAR_MS = 5_000
/** Sample again when our own sends used this share of the room that was left. */
const ROOM_SHARE = 0.25

export interface AdmissionOptions {
  readonly queue: AnyQueue
  readonly transport: Transport
  readonly now: () => number
  readonly drain: DrainRate
  readonly total: QueueTotal
}

export function admission(options: AdmissionOptions): Admission {
  const { queue, transport } = options
  if (transport.traits.capacity === 'exact' || queue.capacity === 'unbounded') {
    return {
      admit: () => undefined,
      admitNow: () => undefined,
      makeRoom: (remove) => remove(),
      mark: () => 0,
      left: () => undefined,
    }
  }
  return sampledAdmission(queue.capacity, options)
}

function sampledAdmission(
  capacity: Exclude<CapacityChoice, 'unbounded'>,
  options: AdmissionOptions,
): Admission {
  const { now, total: backend } = options
  const { whenFull } = capacity
  const { limitFor, refusal } = watermarks(capacity, options)
  let total = 0
  /** Admitted since the last sample began. */
  let ownSince = 0
  /** On the way when it began: it may have been too early to see them, so they count once more until the next one. */
  let unseen = 0
  /** Removed for new ones that have not come yet. In exchange the queue does not grow, however wrong the count may be. */
  let exchanged = 0
  /** Acked and dead in this process, by settlements that began after the last sample had ended, which cannot have seen it. */
  let leftSince = 0
  let begun = 0
  let ended = 0
  let sampledAt = Number.NEGATIVE_INFINITY
  let fullMs = SAMPLE_FULL_MS
  let sampling: Promise<void> | undefined

  const sample = (onTheWay: number): Promise<void> => {
    sampling ??= sampleNow(onTheWay).finally(() => {
      sampling = undefined
    })
    return sampling
  }

  const sampleNow = async (onTheWay: number): Promise<void> => {
    begun += 1
    // One that somebody else asked for began before ours, and may not have seen what was sent since.
    if (backend.isReading) await backend.read()
    const ownBefore = ownSince
    const read = await backend.read()
    total = read.total
    unseen = onTheWay
    ownSince -= ownBefore
    leftSince = 0
    ended += 1
    sampledAt = now()
    const soonMs = Math.max(SAMPLE_SOON_MS, read.tookMs * REST_PER_SAMPLE)
    fullMs = whenFull === 'reject' ? SAMPLE_FULL_MS : Math.min(SAMPLE_FULL_MS, soonMs)
  }

  const held = (): number => total + unseen + ownSince - leftSince

  const isStale = (limit: number): boolean => {
    const ageMs = now() - sampledAt
    if (held() >= limit) return ageMs >= fullMs
    if (ownSince - leftSince > (limit - total) * ROOM_SHARE) return ageMs >= SAMPLE_SOON_MS
    return ageMs >= (held() > limit / 2 ? SAMPLE_NEAR_MS : SAMPLE_FAR_MS)
  }

  const decide = ({ messages, priority }: Asked, limit: number): void => {
    if (exchanged >= messages) exchanged -= messages
    else if (held() + messages > limit) throw refusal(limit, priority)
    ownSince += messages
  }

  return {
    admit: (asked) => {
      const limit = limitFor(asked.priority)
      if (!isStale(limit)) return decide(asked, limit)
      return sample(asked.onTheWay).then(() => decide(asked, limit))
    },
    admitNow: (asked) => {
      const limit = limitFor(asked.priority)
      if (isStale(limit)) sample(asked.onTheWay).catch(() => undefined)
      decide(asked, limit)
    },
    makeRoom: async (remove) => {
      const before = sampling === undefined ? begun : undefined
      const removed = await remove()
      exchanged += removed
      // A sample that began meanwhile may have seen that they are gone.
      if (before === begun) ownSince -= removed
      return removed
    },
    mark: () => ended,
    left: (messages, mark) => {
      if (mark === ended) leftSince += messages
    },
  }
}
