import type { Clock } from '../model/clock.ts'
import { messageOfError } from '../model/describe-error.ts'
import type { Logger } from '../model/logger.ts'
import { read } from '../model/probe.ts'
import type { Store } from '../store/store.ts'
import { changedState, readState } from './changed-state.ts'
import { type Measure, measured, type Ran } from './measure.ts'

/** The measure that all processes of a store keep together. */
export interface FleetMeasure {
  /** Tells the store of it, now and then, with what others gave meanwhile. */
  add(ran: Ran): void
  /** At the end, so a failure is not said: nobody misses what one process has seen last. */
  flush(): Promise<void>
  /** Undefined when nobody has written one. Rejects with what the store threw. */
  read(): Promise<Measure | undefined>
}

export interface FleetMeasureOptions {
  readonly queue: string
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  readonly store: Pick<Store, 'states'>
  /** Fires when the app ends. */
  readonly closed?: AbortSignal
}

/** One swap for each process that works; the sums that it changes halve in six times as long. */
const TELL_EVERY_MS = 10_000
const NOTHING: Ran = { runs: 0, busyMs: 0 }

export function fleetMeasure(options: FleetMeasureOptions): FleetMeasure {
  const { queue, clock, random, logger, closed } = options
  const { states } = options.store
  const name = `flow:ran:${queue}`
  let untold = NOTHING
  let toldAt: number | undefined
  let telling: Promise<void> | undefined
  let failing = false
  let ending = false

  const tell = async (): Promise<void> => {
    const ran = untold
    untold = NOTHING
    toldAt = clock.now()
    try {
      const change = (before: Measure | undefined): Measure => measured(before, ran, clock.now())
      const ours = { states, clock, random, name, read: readMeasure, change }
      const after = await changedState({ ...ours, ...(closed && { closed }) })
      if (after === undefined) untold = sum(untold, ran)
      failing = false
    } catch (error) {
      untold = sum(untold, ran)
      const what = `the store was not told how long handlers take (${messageOfError(error)})`
      if (!failing && !ending) logger.warn(`queue "${queue}": ${what}; trying again`, { queue })
      failing = true
    }
  }

  const tellUntold = (): Promise<void> => {
    if (untold.runs === 0) return telling ?? Promise.resolve()
    telling ??= tell().finally(() => {
      telling = undefined
    })
    return telling
  }

  return {
    add: (ran) => {
      untold = sum(untold, ran)
      toldAt ??= clock.now()
      // Spread, so that processes that began together do not meet in the store each time.
      if (clock.now() - toldAt >= TELL_EVERY_MS * (1 + random() / 2)) void tellUntold()
    },
    flush: () => {
      ending = true
      return tellUntold()
    },
    read: async () => {
      const found = await states.read(name)
      return found && readState(found.value, readMeasure)
    },
  }
}

function sum(one: Ran, other: Ran): Ran {
  return { runs: one.runs + other.runs, busyMs: one.busyMs + other.busyMs }
}

function readMeasure(value: unknown): Measure | undefined {
  const numbers = ['at', 'since', 'runs', 'busyMs'].map((key) => read(value, key))
  const [at, since, runs, busyMs] = numbers.filter((one) => typeof one === 'number')
  if (at === undefined || since === undefined || runs === undefined || busyMs === undefined) {
    return undefined
  }
  const handlerMs = read(value, 'handlerMs')
  return {
    at,
    since,
    runs,
    busyMs,
    handlerMs: typeof handlerMs === 'number' ? handlerMs : undefined,
  }
}
