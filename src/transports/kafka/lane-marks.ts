import { pause } from '../../model/clock.ts'
import type { Cluster } from './client.ts'
import type { Committer } from './committer.ts'
import type { Lane } from './lane.ts'
import { ENDED } from './offsets.ts'

/**
 * What stands beside a position while a partition is held, and when its holder has ended. So who comes next knows whether a
 * holder vanished, and need not suspect each of the first messages of having killed it.
 */
export interface LaneMarks {
  /** Before anything is handed out. It also keeps where a group begins that has committed nothing yet. Rejects when it cannot be written. */
  held(lanes: readonly Lane[]): Promise<void>
  /** Of those of which nothing is left in hand; never rejects. What cannot be written in time stays held. */
  ended(lanes: readonly Lane[]): Promise<void>
}

/** A partition that goes waits for it, and so does a close. */
const ENDED_MS = 1_000

export function laneMarks(
  { clock }: Pick<Cluster, 'clock'>,
  commit: Committer['commit'],
): LaneMarks {
  return {
    held: async (lanes) => {
      const outcomes = await Promise.all(
        lanes.map((lane) => commit(lane, { position: lane.fetchFrom, note: '' })),
      )
      const failed = outcomes.find((outcome) => !outcome.ok)
      if (failed?.ok === false) {
        throw failed.fault.cause ?? new Error(`positions cannot be committed: ${failed.fault.code}`)
      }
    },
    ended: async (lanes) => {
      const over = lanes.filter(isEnded)
      if (over.length === 0) return
      const written = new AbortController()
      const all = over.map((lane) => commit(lane, { position: lane.committed, note: ENDED }))
      await Promise.race([Promise.all(all), pause(clock, ENDED_MS, written.signal)])
      written.abort()
    },
  }
}

/** All that was handed out is settled, and so is what a holder before may have had in hand. */
function isEnded({ claim, committed, handedTo, untouchedFrom }: Lane): boolean {
  return !claim.lost.aborted && committed === handedTo && committed >= untouchedFrom
}
