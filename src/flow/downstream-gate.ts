import { isRefusedCall } from '../store/refused-call.ts'
import type { BoardUser } from './breaker-board.ts'
import { type GateSettings, gateRate, gateThrottled, gateWaitMs } from './gate.ts'
import { queueWarning } from './queue-warning.ts'
import { refusedByStore } from './refused-by-store.ts'

/** Keeps messages from a downstream that asked for a pause, and lets few go at first afterwards. */
export interface DownstreamGate {
  /** Undefined: go. A number: wait so long, in ms. While few may go, the store is asked. */
  ask(downstream: string, waiting: number): number | undefined | Promise<number | undefined>
  /** It asked for a pause. */
  throttled(downstream: string, forMs: number): void
}

export interface DownstreamGateOptions extends BoardUser {
  readonly settings: GateSettings
}

/** Of a rate per second: what may go at once. */
const BURST_S = 0.2
/** Another answer of the same moment moves the end no further. */
const SAME_MS = 500
const AWAY_MS = 1_000

export function downstreamGate(options: DownstreamGateOptions): DownstreamGate {
  const { queue, settings, clock, random, share, board } = options

  const warn = queueWarning(options)

  /** About when its turn comes, by how many wait; not all at the same moment. */
  const turnMs = (waiting: number, sinceMs: number): number =>
    Math.max(0, gateWaitMs(waiting, settings) * (0.5 + random()) - sinceMs)

  const token = async (
    downstream: string,
    perSecond: number,
    turn: () => number,
  ): Promise<number | undefined> => {
    const rate = { capacity: Math.max(1, perSecond * BURST_S), refillPerSecond: perSecond }
    try {
      const { taken, retryAfterMs } = await share.buckets.take(nameOf(queue, downstream), rate, 1)
      return taken ? undefined : Math.max(retryAfterMs ?? AWAY_MS, turn())
    } catch (error) {
      if (isRefusedCall(error)) throw refusedByStore(queue, 'token (gate)', error)
      warn(`nobody can be let through to ${JSON.stringify(downstream)}`, error)
      return AWAY_MS
    }
  }

  return {
    ask: (downstream, waiting) => {
      const { gate } = board.of(downstream)
      if (gate === undefined) return undefined
      const now = clock.now()
      const perSecond = gateRate(gate, now, settings)
      if (perSecond === 0) return gate.until - now + turnMs(waiting, 0)
      if (perSecond === Number.POSITIVE_INFINITY) return undefined
      return token(downstream, perSecond, () => turnMs(waiting, now - gate.until))
    },
    throttled: (downstream, forMs) => {
      const now = clock.now()
      const state = board.of(downstream)
      const next = gateThrottled(state.gate, forMs, now, settings)
      if (state.gate !== undefined && next.until - state.gate.until < SAME_MS) return
      board.assume(downstream, { ...state, gate: next })
      board
        .change(downstream, (known) => ({
          ...known,
          gate: gateThrottled(known.gate, forMs, now, settings),
        }))
        .catch((error: unknown) => {
          warn(`others are not told that ${JSON.stringify(downstream)} asks for a pause`, error)
        })
    },
  }
}

function nameOf(queue: string, downstream: string): string {
  return `flow:gate:${queue}:${downstream}`
}
