/** Where time comes from. Nothing else in Millrace reads the time or starts a timer. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number
  /**
   * Calls `run` once after `ms`, when `now` has gone on by that much, too (unless it was set back meanwhile); any length is
   * allowed. The result cancels it.
   */
  after(ms: number, run: () => void): Cancel
}

export type Cancel = () => void

/** The longest delay that setTimeout takes; a longer one would fire at once (Node's manual, Timers). */
const TIMER_MAX_MS = 2_147_483_647

/** The machine's own clock. Timers do not keep the process alive when `unref` is set. */
export function systemClock(options: { readonly unref?: boolean } = {}): Clock {
  return {
    now: () => Date.now(),
    after: (ms, run) => longTimer(ms, run, options.unref ?? false),
  }
}

/**
 * Timers count on another clock than Date.now, from the start of the event loop's turn: about a fifth of short ones fire while
 * Date.now is still 1 ms before their time (measured on Linux with Node 24). Who then asks whether its time has come is told no,
 * and nothing wakes it again.
 */
const EARLY_MAX_MS = 2

function longTimer(ms: number, run: () => void, unref: boolean): Cancel {
  const dueAt = Date.now() + ms
  let leftMs = Math.max(0, ms)
  let timer: NodeJS.Timeout
  const arm = (): void => {
    const stepMs = Math.min(leftMs, TIMER_MAX_MS)
    leftMs -= stepMs
    timer = setTimeout(fire, stepMs)
    if (unref) timer.unref()
  }
  const fire = (): void => {
    const earlyMs = dueAt - Date.now()
    if (leftMs <= 0 && earlyMs > 0 && earlyMs <= EARLY_MAX_MS) leftMs = earlyMs
    if (leftMs > 0) arm()
    else run()
  }
  arm()
  return () => clearTimeout(timer)
}

/** Resolves after `ms`, or at once when the signal fires; never rejects. Leaves no timer or listener behind. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      cancel()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const cancel = clock.after(ms, done)
    signal?.addEventListener('abort', done, { once: true })
  })
}
