import type { Clock } from '../model/clock.ts'
import type { BreakerSettings } from './breaker.ts'
import { type BreakerFleet, fleetFromJson, fleetToJson } from './breaker-fleet.ts'
import { changedState, readState } from './changed-state.ts'
import { endsSeen } from './ends-seen.ts'
import type { Share } from './process-share.ts'

/** The breakers of a queue as all know them, and as this process's clock lets it believe them: one state in the store. Each act rejects with what the store threw. */
export interface FleetRecord {
  read(): Promise<BreakerFleet>
  /** What it is now; undefined when others wrote at every try. */
  change(
    change: (before: BreakerFleet) => BreakerFleet | undefined,
  ): Promise<BreakerFleet | undefined>
}

export interface FleetRecordOptions {
  readonly queue: string
  readonly clock: Clock
  readonly random: () => number
  readonly share: Share
  readonly settings: BreakerSettings
  /** Fires when nobody waits for the breakers any more. */
  readonly closed?: AbortSignal
}

export function fleetRecord(options: FleetRecordOptions): FleetRecord {
  const { queue, clock, random, share, settings, closed } = options
  const { states } = share
  const asSeen = endsSeen(settings)
  const believed = (fleet: BreakerFleet | undefined): BreakerFleet =>
    asSeen(fleet ?? new Map(), clock.now())
  const name = `flow:breakers:${queue}`
  /** One act at a time: an answer that was asked for earlier must not replace a later one. */
  const inTurn = turns()
  return {
    read: () =>
      inTurn(async () => {
        const found = await states.read(name)
        return believed(found && readState(found.value, fleetFromJson))
      }),
    change: (change) =>
      inTurn(async () => {
        const changed = await changedState<BreakerFleet>({
          states,
          clock,
          random,
          name,
          read: fleetFromJson,
          write: fleetToJson,
          change: (before) => change(believed(before)),
          ...(closed && { closed }),
        })
        return changed && believed(changed)
      }),
  }
}

function turns(): <T>(act: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (act) => {
    const next = last.then(act)
    last = next.catch(() => undefined)
    return next
  }
}
