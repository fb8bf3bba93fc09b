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
 * Under npm one Ctrl-C arrives twice: the terminal sends it to every process, and npm hands its own on, within a few ms
 * (measured with npm 11: 0.4 ms). Nobody presses it that fast.
 */
const ECHO_MS = 100

/**
 * Listens to SIGTERM and SIGINT: the first one drains, the second one aborts. Only a SIGINT that repeats one within
 * 100 ms is taken for its echo and left out; a second SIGTERM, or the other signal, counts at once.
 *
 * @returns how to stop listening
 * @example
 * const stop = onSignals({ first: () => app.close(), second: () => app.close({ timeoutMs: 0 }) })
 */
export function onSignals(acts: SignalActs, clock: Clock = systemClock()): () => void {
  let first: { readonly signal: StopSignal; readonly at: number } | undefined
  let aborted = false
  const heard = (signal: StopSignal): void => {
    if (first === undefined) {
      first = { signal, at: clock.now() }
      acts.first(signal)
      return
    }
    const isRepeated = signal === 'SIGINT' && first.signal === 'SIGINT'
    if (aborted || (isRepeated && clock.now() - first.at <= ECHO_MS)) return
    aborted = true
    acts.second(signal)
  }
  const listeners = SIGNALS.map((signal) => [signal, () => heard(signal)] as const)
  for (const [signal, listener] of listeners) process.on(signal, listener)
  return () => {
    for (const [signal, listener] of listeners) process.off(signal, listener)
  }
}
