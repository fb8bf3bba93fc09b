import type { Cancel, Clock } from '../model/clock.ts'

/** A clock that stands still until it is moved. */
export interface VirtualClock extends Clock {
  /**
   * Moves time by `ms` and fires every timer that falls due on the way, in due order, each at its
   * own moment. Between two timers everything that they set in motion runs, so that timers set by
   * timers are met too. Concurrent calls queue up behind each other.
   */
  advance(ms: number): Promise<void>
  /** When the next timer is due, in epoch ms; undefined when none is set. */
  nextDueAt(): number | undefined
}

export interface VirtualClockOptions {
  /** Epoch ms at the start. Default 2026-01-01T00:00:00Z. */
  readonly startMs?: number
}

interface Timer {
  readonly dueAt: number
  readonly run: () => void
}

/**
 * Turns of the event loop between two timers. Promise chains end within one; streams, sockets in
 * memory and `setImmediate` in the code under test need a few more.
 */
const TURNS = 4

/** Time for tests: nothing happens until `advance`. */
export function virtualClock(options: VirtualClockOptions = {}): VirtualClock {
  let nowMs = options.startMs ?? Date.UTC(2026, 0, 1)
  let queue: Promise<void> = Promise.resolve()
  const timers: Timer[] = []

  const move = async (ms: number): Promise<void> => {
    const endMs = nowMs + ms
    await turns()
    for (let next = timers[0]; next && next.dueAt <= endMs; next = timers[0]) {
      timers.shift()
      nowMs = Math.max(nowMs, next.dueAt)
      next.run()
      await turns()
    }
    nowMs = endMs
    await turns()
  }

  return {
    now: () => nowMs,
    after: (ms, run) => schedule(timers, { dueAt: nowMs + Math.max(0, ms), run }),
    advance(ms) {
      if (!(ms >= 0)) throw new RangeError(`expected advance(ms) with ms >= 0, got ${ms}`)
      const done = queue.then(() => move(ms))
      queue = done.catch(() => {})
      return done
    },
    nextDueAt: () => timers[0]?.dueAt,
  }
}

/**
 * Keeps the list sorted by due time; timers of the same moment keep the order in which they were
 * set.
 */
function schedule(timers: Timer[], timer: Timer): Cancel {
  let low = 0
  let high = timers.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((timers[middle] as Timer).dueAt <= timer.dueAt) low = middle + 1
    else high = middle
  }
  timers.splice(low, 0, timer)
  return () => {
    const at = timers.indexOf(timer)
    if (at >= 0) timers.splice(at, 1)
  }
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++)
    await new Promise<void>((resolve) => setImmediate(resolve))
}
