import { MillraceError, QueueFullError } from '../model/errors.ts'
import type { MaybePromise } from '../model/maybe-promise.ts'
import type { Transport } from '../transport/transport.ts'
import type { DrainRate } from './drain-rate.ts'
import type { AnyQueue } from './queue.ts'

/**
 * Keeps a queue within its capacity where the backend does not count exactly (traits.capacity 'sampled'): the last
 * sampled total plus what this process sent since. Overshoot is bounded by what other processes send between two of
 * our samples (1 s when more than half full, else 5 s), and by what waits in transactions that are open during one.
 */
export interface Admission {
  /**
   * `onTheWay` are the messages that were admitted and are not answered yet.
   * @throws MILLRACE_QUEUE_FULL before anything is sent.
   */
  admit(messages: number, onTheWay: number): MaybePromise<void>
  /**
   * Decides by the last sample, however old, and asks for another one: for a send that must have happened when the call
   * returns.
   */
  admitNow(messages: number, onTheWay: number): void
  /** So many were removed from the queue for new ones: as many are admitted next, whatever the last sample says. */
  freed(messages: number): void
}

const SAMPLE_FULL_MS = 200
const SAMPLE_NEAR_MS = 1_000
const SAMPLE_FAR_MS = 5_000
/** Sample again when our own sends used this share of the room that was left. */
const ROOM_SHARE = 0.25

export interface AdmissionOptions {
  readonly queue: AnyQueue
  readonly transport: Transport
  readonly now: () => number
  readonly drain: DrainRate
}

export function admission(options: AdmissionOptions): Admission {
  const { queue, transport } = options
  if (transport.traits.capacity === 'exact' || queue.capacity === 'unbounded') {
    return { admit: () => undefined, admitNow: () => undefined, freed: () => undefined }
  }
  return sampledAdmission(queue.capacity.maxDepth, options)
}

function sampledAdmission(maxDepth: number, options: AdmissionOptions): Admission {
  const { queue, transport, now, drain } = options
  let total = 0
  /** Admitted since the last sample began. */
  let ownSince = 0
  /** On the way when it began: it may have been too early to see them, so they count once more until the next one. */
  let unseen = 0
  /** Removed for new ones that have not come yet. In exchange the queue does not grow, however wrong the count may be. */
  let exchanged = 0
  let sampledAt = Number.NEGATIVE_INFINITY
  let sampling: Promise<void> | undefined

  const sample = (onTheWay: number): Promise<void> => {
    const ownBefore = ownSince
    sampling ??= totalOf(transport, queue.name)
      .then((read) => {
        total = read
        unseen = onTheWay
        ownSince -= ownBefore
        sampledAt = now()
      })
      .finally(() => {
        sampling = undefined
      })
    return sampling
  }

  const isStale = (): boolean => {
    const held = total + unseen + ownSince
    if (held >= maxDepth) return now() - sampledAt >= SAMPLE_FULL_MS
    if (ownSince > (maxDepth - total) * ROOM_SHARE) return true
    return now() - sampledAt >= (held > maxDepth / 2 ? SAMPLE_NEAR_MS : SAMPLE_FAR_MS)
  }

  const decide = (messages: number): void => {
    if (exchanged >= messages) {
      exchanged -= messages
      return
    }
    if (total + unseen + ownSince + messages > maxDepth) {
      throw new QueueFullError(queue.name, maxDepth, drain.retryAfterMs(maxDepth))
    }
    ownSince += messages
  }

  return {
    admit: (messages, onTheWay) => {
      if (!isStale()) return decide(messages)
      return sample(onTheWay).then(() => decide(messages))
    },
    admitNow: (messages, onTheWay) => {
      if (isStale()) sample(onTheWay).catch(() => undefined)
      decide(messages)
    },
    freed: (messages) => {
      exchanged += messages
    },
  }
}

/**
 * Ready, scheduled and in flight.
 * @throws MILLRACE_UNAVAILABLE when the backend does not say
 */
export async function totalOf(transport: Transport, queue: string): Promise<number> {
  try {
    const gauge = await transport.browse?.gauge(queue)
    return (gauge?.depth ?? 0) + (gauge?.scheduled ?? 0) + (gauge?.inFlight ?? 0)
  } catch (cause) {
    if (cause instanceof MillraceError) throw cause
    throw new MillraceError(
      'MILLRACE_UNAVAILABLE',
      `queue "${queue}": the backend did not say how full the queue is (${transport.diagnose(cause).code}); nothing was stored, try again`,
      { cause, retryable: true, fields: { queue } },
    )
  }
}
