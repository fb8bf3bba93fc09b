import type { Clock } from '../model/clock.ts'
import type { Logger } from '../model/logger.ts'
import { type BreakerState, CLOSED } from './breaker.ts'
import { type BreakerFleet, fleetCounted } from './breaker-fleet.ts'
import { breakerNews } from './breaker-news.ts'
import type { CountWindow } from './count-window.ts'
import { type FleetRecordOptions, fleetRecord } from './fleet-record.ts'
import type { Share } from './process-share.ts'
import { queueWarning } from './queue-warning.ts'
import { untoldRuns } from './untold-runs.ts'

/** What this process knows of the breakers of a queue, and what others will know of its runs. */
export interface BreakerBoard {
  of(downstream: string): BreakerState
  /** A run while it was closed. */
  count(downstream: string, outcome: 'ok' | 'failed'): void
  /** When what others wrote was read longer than a second ago: resolves once it was read again, or after a second. */
  ready(): Promise<void> | undefined
  /** Here at once, and for all when it resolves. `undefined` leaves it as it is. Rejects with what the store threw. */
  change(
    downstream: string,
    change: (state: BreakerState) => BreakerState | undefined,
  ): Promise<BreakerState | undefined>
  /** Here alone, until others are told: what is seen here need not wait for them. */
  assume(downstream: string, state: BreakerState): void
  /** As all know it now. Rejects with what the store threw. */
  all(): Promise<BreakerFleet>
}

/** What stands beside the board and acts on what it knows. */
export interface BoardUser {
  readonly queue: string
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  readonly share: Share
  readonly board: BreakerBoard
}

export interface BreakerBoardOptions extends FleetRecordOptions {
  readonly logger: Logger
}

const LOOK_EVERY_MS = 1_000
/** Not of a look that the end of the app cuts off: nothing is tried again. */
const NOT_SHARED = 'its breakers are not shared with other workers now; trying again'

export function breakerBoard(options: BreakerBoardOptions): BreakerBoard {
  const { settings, clock } = options
  const shared = fleetRecord(options)
  const untold = untoldRuns(settings.windowMs)
  const tell = breakerNews(options)
  const warn = queueWarning(options)
  let fleet: BreakerFleet = new Map()
  let lookedAt = Number.NEGATIVE_INFINITY
  let isWaiting = false
  let failing = false

  const learn = (next: BreakerFleet): void => {
    tell(fleet, next)
    fleet = next
  }

  const worthTelling = (): ReadonlyMap<string, CountWindow> =>
    untold.worthTelling((downstream) => fleet.has(downstream), clock.now())

  /** With what this process has seen since. */
  const withOwn = (known: BreakerFleet): BreakerFleet =>
    fleetCounted(known, worthTelling(), clock.now(), settings)

  const sync = async (): Promise<void> => {
    isWaiting = false
    lookedAt = clock.now()
    const ran = worthTelling()
    untold.told(ran.keys())
    try {
      const change = (before: BreakerFleet): BreakerFleet =>
        fleetCounted(before, ran, clock.now(), settings)
      const next = await (ran.size === 0 ? shared.read() : shared.change(change))
      if (next === undefined) throw new Error('others wrote at every try')
      learn(withOwn(next))
      failing = false
    } catch (error) {
      untold.back(ran)
      if (!failing && options.closed?.aborted !== true) warn(NOT_SHARED, error)
      failing = true
    }
  }

  /** One at a time, and one more after it for what came meanwhile. */
  let syncing = Promise.resolve()
  const startSync = (): void => {
    if (isWaiting) return
    isWaiting = true
    syncing = syncing.then(sync)
  }

  const look = (): Promise<void> | undefined => {
    if (isLately(lookedAt, clock.now())) return undefined
    startSync()
    return syncing
  }

  return {
    of: (downstream) => fleet.get(downstream) ?? CLOSED,
    ready: () => {
      const reading = look()
      return reading && withinTime(clock, reading)
    },
    count: (downstream, outcome) => {
      untold.count(downstream, outcome, clock.now())
      if (outcome === 'ok') return void look()
      const own = withOwn(fleet)
      // Nobody waits for the store to know what this process has seen itself.
      if (own.get(downstream)?.phase !== 'open') return void look()
      learn(own)
      startSync()
    },
    change: async (downstream, change) => {
      const changed = await shared.change((before) => changedOne(before, downstream, change))
      if (changed !== undefined) learn(withOwn(changed))
      return changed?.get(downstream)
    },
    assume: (downstream, state) => learn(new Map([...fleet, [downstream, state]])),
    all: async () => {
      learn(withOwn(await shared.read()))
      return fleet
    },
  }
}

/** Not when it lies ahead: then the clock was set back. */
function isLately(lookedAt: number, now: number): boolean {
  return now >= lookedAt && now - lookedAt < LOOK_EVERY_MS
}

function changedOne(
  before: BreakerFleet,
  downstream: string,
  change: (state: BreakerState) => BreakerState | undefined,
): BreakerFleet | undefined {
  const after = change(before.get(downstream) ?? CLOSED)
  return after && new Map([...before, [downstream, after]])
}

/** A store that hangs keeps nobody: then what is known decides. */
function withinTime(clock: Clock, syncing: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(LOOK_EVERY_MS, resolve)
    void syncing.then(() => {
      cancel()
      resolve()
    })
  })
}
