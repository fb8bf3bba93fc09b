import type { Clock } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'
import { chain, type MaybePromise } from '../model/maybe-promise.ts'
import { type BreakerSettings, type BreakerState, breakerHeld, breakerVerdict } from './breaker.ts'
import { breakerBoard } from './breaker-board.ts'
import type { BreakerFleet } from './breaker-fleet.ts'
import { breakerProbes, type Probe } from './breaker-probes.ts'
import { downstreamGate } from './downstream-gate.ts'
import { processShare, type Share } from './process-share.ts'

/** The breakers of the downstreams of one queue. */
export interface Breakers {
  /** Before messages are admitted: undefined when what others know was read just now. */
  ready(): Promise<void> | undefined
  /** Whether a message for this downstream may run now; else how long it waits, given back without blame. */
  admit(downstream: string): MaybePromise<BreakerPass | Wait>
  /** It said "later": for `forMs`, or nobody knows. */
  throttled(pass: BreakerPass, forMs: number | undefined): void
  /** What became of it. A failure of a downstream that is left alone is not the message's: how long it waits. */
  concluded(pass: BreakerPass, outcome: 'ok' | 'failed' | 'undecided'): Wait | undefined
  readonly windowMs: number
  /** Rejects with what the store threw. */
  all(): Promise<BreakerFleet>
  hold(downstream: string, held: BreakerState['held']): Promise<void>
  close(): void
}

/** Given back without blame, for so long. */
export interface Wait {
  readonly delayMs: number
}

export interface BreakerPass {
  readonly downstream: string
  readonly probe: Probe | undefined
}

export interface BreakersOptions {
  readonly queue: string
  readonly settings: BreakerSettings
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  /** Undefined: of this process alone. */
  readonly store: Share | undefined
  /** Fires when the app ends. */
  readonly closed?: AbortSignal
}

/** While another message is tried. */
const PROBE_WAIT_MS = 500
/** What waited comes back no faster than 500 a second, and no later than five minutes after the time. */
const SPREAD_EACH_MS = 2
/** Told to come later, but not when. */
const PAUSE_MS = 1_000
const TOLD_MAX = 10_000
const SPREAD_MIN_MS = 1_000
const SPREAD_MAX_MS = 300_000

export function breakers(options: BreakersOptions): Breakers {
  const { clock, random } = options
  const share = options.store ?? processShare(clock)
  const board = breakerBoard({ ...options, share })
  const probes = breakerProbes({ ...options, share, board })
  /** Messages that were told to wait since it opened. */
  const told = new Map<string, number>()

  const gate =
    options.settings.gate &&
    downstreamGate({ ...options, settings: options.settings.gate, share, board })

  const oneMore = (downstream: string): number => {
    const waiting = (told.get(downstream) ?? 0) + 1
    told.set(downstream, waiting)
    const [oldest] = told.keys()
    if (told.size > TOLD_MAX && oldest !== undefined) told.delete(oldest)
    return waiting
  }

  const wait = (downstream: string, waitMs: number): Wait => {
    const waiting = oneMore(downstream)
    const spreadMs = Math.min(SPREAD_MAX_MS, Math.max(SPREAD_MIN_MS, waiting * SPREAD_EACH_MS))
    return { delayMs: Math.ceil(Math.max(0, waitMs) + random() * spreadMs) }
  }

  const waitFor = (downstream: string): Wait | undefined => {
    const verdict = breakerVerdict(board.of(downstream), clock.now())
    if (verdict.as === 'run') return undefined
    return wait(downstream, verdict.as === 'wait' ? verdict.until - clock.now() : PROBE_WAIT_MS)
  }

  const throughGate = (downstream: string): MaybePromise<BreakerPass | Wait> => {
    const pass = { downstream, probe: undefined }
    const answer = gate?.ask(downstream, told.get(downstream) ?? 0)
    const decided = (waitMs: number | undefined): BreakerPass | Wait => {
      if (waitMs === undefined) return pass
      oneMore(downstream)
      return { delayMs: Math.ceil(waitMs) }
    }
    if (answer !== undefined) return chain(answer, decided)
    // Nothing waits any more, for whatever it was.
    if (told.size > 0) told.delete(downstream)
    return pass
  }

  return {
    throttled: ({ downstream }, forMs) => gate?.throttled(downstream, forMs ?? PAUSE_MS),
    ready: board.ready,
    admit: (downstream) => {
      const state = board.of(downstream)
      const verdict = breakerVerdict(state, clock.now())
      const asksForPause = clock.now() < (state.gate?.until ?? 0)
      if (verdict.as === 'run' || asksForPause) return throughGate(downstream)
      const probe = verdict.as === 'probe' ? probes.take(downstream) : undefined
      return probe ? { downstream, probe } : (waitFor(downstream) ?? { delayMs: 0 })
    },
    concluded: ({ downstream, probe }, outcome) => {
      if (probe !== undefined) {
        void probes.end(probe, outcome)
        return outcome === 'failed' ? wait(downstream, options.settings.openMs) : undefined
      }
      if (outcome === 'undecided') return undefined
      board.count(downstream, outcome)
      return outcome === 'failed' ? waitFor(downstream) : undefined
    },
    windowMs: options.settings.windowMs,
    all: board.all,
    hold: async (downstream, held) => {
      await board.change(downstream, (state) => breakerHeld(state, held))
    },
    close: probes.close,
  }
}
