/** Where time comes from. Nothing else in Millrace reads the time or starts a timer. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number
  /** Calls `run` once after `ms`; any length is allowed. The result cancels it. */
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

function longTimer(ms: number, run: () => void, unref: boolean): Cancel {
  let leftMs = Math.max(0, ms)
  let timer: NodeJS.Timeout
  const arm = (): void => {
    const stepMs = Math.min(leftMs, TIMER_MAX_MS)
    leftMs -= stepMs
    timer = setTimeout(() => (leftMs > 0 ? arm() : run()), stepMs)
    if (unref) timer.unref()
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
