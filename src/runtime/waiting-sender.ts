import type { RoomTurn } from '../deadletters/redrive.ts'
import type { Clock } from '../model/clock.ts'
import { hasCode, QueueFullError } from '../model/errors.ts'
import { type MaybePromise, recovered } from '../model/maybe-promise.ts'
import type { DrainRate } from './drain-rate.ts'
import type { AnyQueue } from './queue.ts'
import { type RoomLine, roomLine } from './room-line.ts'
import type { Sender } from './sender.ts'

/** Sends that wait for room in one queue of one process; one more is refused at once. */
const LINE_MAX = 10_000

export interface WaitingSenderOptions {
  readonly queue: AnyQueue
  readonly clock: Clock
  readonly drain: DrainRate
  readonly closed: AbortSignal
}

export interface WaitingSender {
  readonly sender: Sender
  /** There may be room. */
  look(): void
  /** For what is no send and waits for room as they do; undefined where they do not wait. */
  readonly turn: RoomTurn | undefined
}

/**
 * `whenFull: 'wait'`: a send that finds the queue full waits for room instead. One in a transaction of the user's does not: that
 * would stay open meanwhile.
 */
export function waitingSender(sender: Sender, options: WaitingSenderOptions): WaitingSender {
  const { queue, clock, drain, closed } = options
  const { capacity } = queue
  if (capacity === 'unbounded' || capacity.whenFull !== 'wait') {
    return { sender, look: () => undefined, turn: undefined }
  }
  const { maxDepth, waitMs } = capacity
  const full = (): QueueFullError =>
    new QueueFullError(queue.name, maxDepth, drain.retryAfterMs(maxDepth))
  const line = roomLine({ queue: queue.name, clock, waitMs, lengthMax: LINE_MAX, full, closed })

  const inLine = <T>(
    attempt: () => MaybePromise<T>,
    send: { readonly tx?: unknown; readonly signal?: AbortSignal } | undefined,
  ): MaybePromise<T> => {
    if (send?.tx !== undefined) return attempt()
    if (line.length > 0) return line.enter(attempt, send?.signal)
    return recovered(attempt, (error) => {
      if (!hasCode(error, 'MILLRACE_QUEUE_FULL')) throw error
      return line.enter(attempt, send?.signal)
    })
  }

  const inTurn: Sender = {
    sendNow: (payload, send) => inLine(() => sender.sendNow(payload, send), send),
    sendBatch: (payloads, send) => inLine(() => sender.sendBatch(payloads, send), send),
  }
  return { sender: inTurn, look: line.look, turn: turnIn(line, full) }
}

function turnIn(line: RoomLine, full: () => QueueFullError): RoomTurn {
  return async (attempt, signal) => {
    try {
      return await line.enter(async () => {
        const done = await attempt()
        if (done === undefined) throw full()
        return done
      }, signal)
    } catch (error) {
      const inVain = hasCode(error, 'MILLRACE_QUEUE_FULL')
      if (inVain || (signal?.aborted === true && error === signal.reason)) return undefined
      throw error
    }
  }
}
