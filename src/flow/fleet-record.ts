import type { Clock } from '../model/clock.ts'
import { type BreakerFleet, fleetFromJson, fleetToJson } from './breaker-fleet.ts'
import { changedState, readState } from './changed-state.ts'
import type { Share } from './process-share.ts'

/** The breakers of a queue as all know them: one state in the store. Each act rejects with what the store threw. */
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
}

export function fleetRecord({ queue, clock, random, share }: FleetRecordOptions): FleetRecord {
  const { states } = share
  const name = `flow:breakers:${queue}`
  /** One act at a time: an answer that was asked for earlier must not replace a later one. */
  const inTurn = turns()
  return {
    read: () =>
      inTurn(async () => {
        const found = await states.read(name)
        return (found && readState(found.value, fleetFromJson)) ?? new Map()
      }),
    change: (change) =>
      inTurn(() =>
        changedState<BreakerFleet>({
          states,
          clock,
          random,
          name,
          read: fleetFromJson,
          write: fleetToJson,
          change: (before) => change(before ?? new Map()),
        }),
      ),
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
