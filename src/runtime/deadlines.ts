import type { Cancel, Clock } from '../model/clock.ts'

/** The end of the time that those who began in one millisecond have. */
export interface Deadline {
  /** Epoch ms. */
  readonly beganAt: number
  /** How many it still concerns. */
  members: number
  readonly cancel: Cancel
}

/**
 * Times of one length, with one timer for all that begin in the same millisecond: a batch begins in a few, and a timer for each
 * message cost 0.4 µs to set and to clear (Node 24).
 */
export interface Deadlines {
  /** @param beganAt epoch ms, a moment ago */
  join(beganAt: number): Deadline
  /** It concerns one fewer. Once for each `join`. */
  leave(deadline: Deadline): void
}

/** @param onDue knows itself whom it still concerns */
export function deadlines(
  clock: Clock,
  ms: number,
  onDue: (deadline: Deadline) => void,
): Deadlines {
  let newest: Deadline | undefined

  const open = (beganAt: number): Deadline => {
    const leftMs = Math.max(0, ms - Math.max(0, clock.now() - beganAt))
    const cancel = clock.after(leftMs, () => {
      if (newest === deadline) newest = undefined
      onDue(deadline)
    })
    const deadline: Deadline = { beganAt, members: 0, cancel }
    return deadline
  }
  return {
    join(beganAt) {
      if (newest?.beganAt !== beganAt) newest = open(beganAt)
      newest.members++
      return newest
    },
    leave(deadline) {
      deadline.members--
      if (deadline.members > 0) return
      deadline.cancel()
      if (newest === deadline) newest = undefined
    },
  }
}
