import type { Clock } from '../model/clock.ts'
import { type FleetMeasureOptions, fleetMeasure } from './fleet-measure.ts'
import { type Measure, measured } from './measure.ts'

/** Measures the handlers of one queue in this process; with a store those of all processes together. */
export interface Meter {
  /** @param now epoch ms; who has just asked the clock need not make it be asked again */
  began(now?: number): void
  ended(tookMs: number, now?: number): void
  /** Handlers that ran in this process, times the ms that they did, since it began. */
  busyMs(): number
  /** Handlers that ended in this process, since it began. */
  runs(): number
  /** Of this process. Undefined before the first handler ended. */
  own(): Measure | undefined
  /** Of all processes; undefined without a store, or when nobody has written one. Rejects with what the store threw. */
  fleet(): Promise<Measure | undefined>
  /** At the end: gives the store what it was not told yet. What it does not take is not missed, and the log says nothing. */
  flush(): Promise<void>
}

export interface MeterOptions extends Omit<FleetMeasureOptions, 'store'> {
  readonly clock: Clock
  readonly store: FleetMeasureOptions['store'] | undefined
}

/** A run costs two additions; what decays is done once a second. */
const FOLD_EVERY_MS = 1_000

export function meter({ store, ...options }: MeterOptions): Meter {
  const { clock } = options
  const shared = store && fleetMeasure({ ...options, store })
  let own: Measure | undefined
  let fresh = { runs: 0, busyMs: 0, at: clock.now() }
  let running = 0
  let runs = 0
  let busyMs = 0
  let since = clock.now()

  const roll = (now = clock.now()): void => {
    busyMs += running * Math.max(0, now - since)
    since = now
  }

  const fold = (): void => {
    const { at: _at, ...ran } = fresh
    fresh = { runs: 0, busyMs: 0, at: clock.now() }
    if (ran.runs === 0) return
    own = measured(own, ran, clock.now())
    shared?.add(ran)
  }

  return {
    began: (now) => {
      roll(now)
      running++
    },
    ended: (tookMs, now) => {
      roll(now)
      running--
      runs++
      fresh.runs++
      fresh.busyMs += tookMs
      if (since - fresh.at >= FOLD_EVERY_MS) fold()
    },
    busyMs: () => {
      roll()
      return busyMs
    },
    runs: () => runs,
    own: () => {
      fold()
      return own
    },
    fleet: async () => shared?.read(),
    flush: async () => {
      fold()
      await shared?.flush()
    },
  }
}
