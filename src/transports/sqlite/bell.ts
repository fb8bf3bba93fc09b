import type { Cancel, Clock } from '../../model/clock.ts'
import type { SqliteHandle } from '../../sql/executor.ts'
import { type Bell, openBell } from '../../transport/bell.ts'

export interface DatabaseBellOptions {
  readonly identity: string | SqliteHandle
  readonly clock: Clock
  readonly pollMs: number
  /** True when another connection may have written since the last call. */
  readonly changed: () => boolean
}

/** The bells of this process, by the database that they are for. */
const bells = new Map<string | SqliteHandle, Set<Bell<number>>>()

/**
 * One database's bell: heard at once by every connection of this process, whichever rings it, and rung by polling for
 * what other processes do.
 */
export function openDatabaseBell(options: DatabaseBellOptions): Bell<number> {
  const { identity, clock, pollMs, changed } = options
  const own = openBell<number>(clock)
  const neighbours = bells.get(identity) ?? new Set()
  bells.set(identity, neighbours.add(own))
  let cancelPoll: Cancel | undefined

  // Polls only while somebody waits: an idle process without workers costs nothing.
  const poll = (): void => {
    cancelPoll = undefined
    if (own.waiting() === 0) return
    if (changed()) own.ring()
    arm()
  }
  const arm = (): void => {
    if (own.waiting() > 0) cancelPoll ??= clock.after(pollMs, poll)
  }

  return {
    ...own,
    ring(queueId) {
      for (const neighbour of neighbours) neighbour.ring(queueId)
    },
    wait(queueId, since, ms, signal) {
      const waited = own.wait(queueId, since, ms, signal)
      arm()
      return waited
    },
    close() {
      neighbours.delete(own)
      if (neighbours.size === 0) bells.delete(identity)
      cancelPoll?.()
      own.close()
    },
  }
}
