import { type Clock, pause } from '../model/clock.ts'
import { hasCode, MillraceError, type QueueFullError } from '../model/errors.ts'
import type { MaybePromise } from '../model/maybe-promise.ts'
import { type LineWaiter, lineWaiter } from './line-waiter.ts'

/** Sends that wait for room in a full queue, in the order in which they came. */
export interface RoomLine {
  /** How many wait. */
  readonly length: number
  /**
   * Waits behind those that are there. `attempt` throws QueueFullError while there is no room; what else it throws or answers is the
   * result. Gives up with QueueFullError after `waitMs`.
   */
  enter<T>(attempt: () => MaybePromise<T>, signal?: AbortSignal): Promise<T>
  /** There may be room: the first tries now, not at the end of its pause. */
  look(): void
}

export interface RoomLineOptions {
  readonly queue: string
  readonly clock: Clock
  readonly waitMs: number
  /** The most that wait: each holds its payload in memory. */
  readonly lengthMax: number
  /** What one is told that is not let into the line, or waited in vain. */
  readonly full: () => QueueFullError
  /** Fires when the app closes: all give up with MILLRACE_CLOSED. */
  readonly closed: AbortSignal
}

/** Between two tries while there is no room, doubled each time: a statement takes about 1 ms, a sampled count is up to 200 ms old. */
const PAUSE_MIN_MS = 10
const PAUSE_MAX_MS = 200
/** One tries first; where there was room for all that tried, twice as many try next, and go to the backend together. */
const TOGETHER_MAX = 256

export function roomLine(options: RoomLineOptions): RoomLine {
  const { queue, clock, lengthMax, full, closed } = options
  const line = new Set<LineWaiter>()
  let running = false
  let wake: (() => void) | undefined

  const rest = async (ms: number): Promise<void> => {
    const early = new AbortController()
    wake = () => early.abort()
    await pause(clock, ms, AbortSignal.any([closed, early.signal]))
    wake = undefined
  }

  const serve = async (): Promise<void> => {
    let together = 1
    let pauseMs = PAUSE_MIN_MS
    while (line.size > 0) {
      const left = await Promise.all(firstOf(line, together).map((waiter) => waiter.tries()))
      if (left.every(Boolean)) {
        together = Math.min(TOGETHER_MAX, together * 2)
        pauseMs = PAUSE_MIN_MS
        continue
      }
      together = 1
      await rest(pauseMs)
      pauseMs = Math.min(PAUSE_MAX_MS, pauseMs * 2)
    }
    // In the turn that saw the line empty: who comes next finds nobody serving.
    running = false
  }

  return {
    get length() {
      return line.size
    },
    enter(attempt, signal) {
      if (line.size >= lengthMax) return Promise.reject(full())
      const { waiter, ended } = lineWaiter(attempt, {
        ...options,
        isNotYet: (error) => hasCode(error, 'MILLRACE_QUEUE_FULL'),
        late: full,
        closedError: () => closedError(queue),
        signal,
        leave: () => line.delete(waiter),
      })
      line.add(waiter)
      if (!running) {
        running = true
        void serve()
      }
      return ended
    },
    look: () => wake?.(),
  }
}

function firstOf<T>(all: Iterable<T>, most: number): readonly T[] {
  const first: T[] = []
  for (const one of all) if (first.push(one) >= most) break
  return first
}

function closedError(queue: string): MillraceError {
  return new MillraceError(
    'MILLRACE_CLOSED',
    `queue "${queue}": the app was closed while this send waited for room; nothing was stored`,
    { fields: { queue } },
  )
}
