import { type Clock, systemClock } from '../model/clock.ts'

export type StopSignal = 'SIGTERM' | 'SIGINT'

export interface SignalActs {
  /** Come to an end in good order. */
  first(signal: StopSignal): void
  /** Come to an end now. Called once; later signals call nothing. */
  second(signal: StopSignal): void
}

const SIGNALS: readonly StopSignal[] = ['SIGTERM', 'SIGINT']

/**
 * Under npm one signal can arrive twice: the terminal sends a Ctrl-C to every process (systemd a SIGTERM to every process of
 * the unit), and npm hands its own on (measured with npm 11: 0.1 to 0.4 ms later). No hand is faster than the window of a
 * Ctrl-C; the one of a SIGTERM is short, because a supervisor's second one may come soon.
 */
const ECHO_MS: Readonly<Record<StopSignal, number>> = { SIGINT: 100, SIGTERM: 5 }

/**
 * Listens to SIGTERM and SIGINT: the first one drains, the second one aborts. The same signal again within 100 ms (SIGINT)
 * or 5 ms (SIGTERM) is taken for npm's echo and left out; the other signal counts at once.
 *
 * @param clock whose timers do not keep the process alive; default: the machine's
 * @returns how to stop listening; the echo of the first signal is left out to the end of its time all the same
 * @example
 * const stop = onSignals({ first: () => app.close(), second: () => app.close({ timeoutMs: 0 }) })
 */
export function onSignals(
  acts: SignalActs,
  clock: Clock = systemClock({ unref: true }),
): () => void {
  let first: { readonly signal: StopSignal; readonly at: number } | undefined
  let aborted = false
  let stopped = false
  const heard = (signal: StopSignal): void => {
    if (stopped) return
    if (first === undefined) {
      first = { signal, at: clock.now() }
      acts.first(signal)
      return
    }
    const isEcho = signal === first.signal && clock.now() - first.at <= ECHO_MS[signal]
    if (aborted || isEcho) return
    aborted = true
    acts.second(signal)
  }
  const listeners = SIGNALS.map((signal) => [signal, () => heard(signal)] as const)
  for (const [signal, listener] of listeners) process.on(signal, listener)
  /** How long an echo of this signal may still come. */
  const echoLeftMs = (signal: StopSignal): number => {
    if (signal !== first?.signal) return 0
    return ECHO_MS[signal] + 1 - Math.max(0, clock.now() - first.at)
  }
  return () => {
    if (stopped) return
    stopped = true
    for (const [signal, listener] of listeners) {
      const off = (): void => void process.off(signal, listener)
      const leftMs = echoLeftMs(signal)
      // Who has nothing to finish ends sooner than the echo comes, and would be killed by it.
      if (leftMs > 0) clock.after(leftMs, off)
      else off()
    }
  }
}
